// What the options of a run become; what is refused is in train_command_test.cc too.
#include "starling/workload/images_options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/workload/images_training.h"
#include "tests/workload/temporary.h"

namespace starling::workload {
namespace {

TEST(ImagesOptions, DefaultsSuitTheOptimizer) {
  const ImagesOptions plain = settle({}, 4);
  EXPECT_EQ(plain.optimizer, "sgd");
  EXPECT_EQ(plain.lr, 0.05);
  EXPECT_EQ(plain.momentum, 0.9);
  EXPECT_EQ(plain.epochs, 5);
  EXPECT_EQ(plain.schedule, "groups");
  const ImagesOptions adam = settle({.algorithm = "dadam"}, 4);
  EXPECT_EQ(adam.optimizer, "adam");
  EXPECT_EQ(adam.lr, 1e-3);
  EXPECT_FALSE(adam.momentum);
  EXPECT_EQ(settle({.optimizer = "adamw"}, 4).weight_decay, 0.01);
  EXPECT_EQ(settle({.algorithm = "accum-adam"}, 4).window, 4);
}

TEST(ImagesOptions, WhatIsGivenStays) {
  const ImagesOptions settled =
      settle({.optimizer = "sgd", .lr = 0.3, .momentum = 0.0, .weight_decay = 0.1}, 4);
  EXPECT_EQ(settled.lr, 0.3);
  EXPECT_EQ(settled.momentum, 0);
  EXPECT_EQ(settled.weight_decay, 0.1);
  // Settled is settled.
  EXPECT_EQ(text_of(settle(settled, 4)), text_of(settled));
}

TEST(ImagesOptions, GroupsFitTheJob) {
  EXPECT_EQ(settle({.group_size = 4}, 4).group_size, 4);
  EXPECT_EQ(refusal([] { settle({.group_size = 5}, 4); }),
            "--group-size 5 is more than the 4 workers of the job");
}

TEST(ImagesOptions, RefusesWhatMakesNoSense) {
  const std::vector<std::pair<ImagesOptions, std::string>> wrong = {
      {{.model = "mpl"}, "did you mean 'mlp'? (mlp, cnn, small-cnn, resnet20)"},
      {{.data = "mnist"}, "--data: unknown 'mnist' (fashion-mnist, cifar10)"},
      {{.batch = 0}, "--batch must be between 1 and 1000000, not 0"},
      {{.steps = -3}, "--steps must be between 1 and 1000000000000, not -3"},
      {{.epochs = std::nan("")}, "--epochs must be above 0"},
      {{.epochs = 1, .steps = 3}, "one of them"},
      {{.seed = -1}, "--seed must be at least 0, not -1"},
      {{.algorithm = "wagmaa"}, "did you mean 'wagma'?"},
      {{.algorithm = "wagma", .schedule = "grups"}, "did you mean 'groups'?"},
      {{.algorithm = "alone", .group_size = 2}, "averages nothing"},
      {{.algorithm = "wagma", .trigger = "need"}, "--trigger need is not for wagma"},
      {{.algorithm = "dadam", .gradient_at = "mixed"}, "--gradient-at mixed is not for dadam"},
      {{.algorithm = "all-reduce", .bf16 = true}, "--bf16 is not for all-reduce"},
      {{.group_size = 0}, "--group-size must be at least 1"},
      {{.sync_period = 0}, "--sync-period must be between 1"},
      {{.gradient_at = "mean"}, "own, mixed"},
      {{.bucket_bytes = 0}, "--bucket-bytes must be between 1"},
      {{.optimizer = "adm"}, "did you mean 'adam'?"},
      {{.optimizer = "adam", .momentum = 0.9}, "--momentum belongs to --optimizer sgd"},
      {{.optimizer = "sgd", .beta2 = 0.5}, "--beta2 belongs to the Adam optimizers"},
      {{.optimizer = "adam", .window = 4}, "--window belongs to --optimizer accum-adam"},
      {{.optimizer = "adam", .beta1 = 1}, "--beta1 must be at least 0 and less than 1"},
      {{.lr = -1}, "--lr must be between 0 and"},
      {{.lr = std::nan("")}, "--lr must be between 0 and"},
      {{.lr_schedule = "cosin"}, "cosin"},
      {{.momentum = 0, .nesterov = true}, "--nesterov needs"},
      {{.clip = 0}, "--clip must be above 0"},
      {{.clip_mode = "global"}, "--clip NORM"},
      {{.non_finite = "go"}, "stop, skip"},
      {{.delay = "9x0.1"}, "9"},
      {{.algorithm = "dadam", .averaging = "after"},
       "--averaging is for d-psgd, wagma and local-sgd"},
      {{.algorithm = "wagma", .averaging = "before"}, "after, beside"},
      {{.algorithm = "wagma", .peers = 2}, "--peers is for sgp"},
      {{.algorithm = "sgp", .peers = 0}, "--peers must be between 1"},
      {{.algorithm = "sgp", .peers = 3}, "3 peers"},
      {{.emulate_compute = "0.1:0.1", .pace = "0.1:0.1"}, "nothing to slow down"},
      {{.pace = "quick"}, "quick"},
      {{.emulate_compute = "quick"}, "quick"},
      {{.device = "cuda"}, "a model on a GPU is not supported yet"},
      {{.on_loss = "panic"}, "stop, continue"},
  };
  for (const auto& [options, part] : wrong) {
    const std::string said = refusal([&] { settle(options, 4); });
    EXPECT_NE(said.find(part), std::string::npos) << "'" << part << "' is not in: " << said;
  }
}

TEST(ImagesOptions, AlgorithmsAsPeopleWriteThem) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"allreduce", "all-reduce"}, {"local", "local-sgd"},
      {"dpsgd", "d-psgd"},         {"adpsgd", "ad-psgd"},
      {"eager", "eager-solo"},     {"accumadam", "accum-adam"},
      {"wagma", "wagma"},          {"overlapped-sgp", "overlapped-sgp"}};
  for (const auto& [written, meant] : names) {
    EXPECT_EQ(settle({.algorithm = written}, 4).algorithm, meant);
  }
  EXPECT_EQ(settle({.algorithm = "accumadam"}, 4).optimizer, "accum-adam");
}

TEST(ImagesOptions, StepsOfEpochs) {
  // 60000 images, 4 workers of 64: 234 steps an epoch.
  EXPECT_EQ(steps_of(settle({.epochs = 2.0}, 4), 4, 60000), 468);
  EXPECT_EQ(steps_of(settle({.epochs = 0.5}, 4), 4, 60000), 117);
  EXPECT_EQ(steps_of(settle({.epochs = 1e-6}, 4), 4, 60000), 1);
  EXPECT_EQ(steps_of(settle({.steps = 7}, 4), 4, 60000), 7);
  EXPECT_EQ(refusal([] { settle({.steps = 7, .warm_up_steps = 7}, 4); }),
            "--warm-up-steps 7 of --steps 7: none is left");
  EXPECT_EQ(refusal([] { steps_of(settle({.epochs = 1, .warm_up_steps = 234}, 4), 4, 60000); }),
            "--warm-up-steps 234: the run has 234 steps");
  EXPECT_NE(refusal([] { steps_of(settle({.batch = 20000}, 4), 4, 60000); }).find("20000"),
            std::string::npos);
}

TEST(ImagesOptions, TriggersThatAreKnown) {
  for (const char* trigger :
       {"all", "first", "first+0.01", "first+learnt", "majority", "quorum:3", "need"}) {
    EXPECT_EQ(settle({.trigger = trigger}, 4).trigger, trigger);
  }
  for (const char* trigger :
       {"first+", "first+x", "first+-1", "first+1s", "never", "quorum:", "quorum:0", "quorum:x"}) {
    EXPECT_NE(refusal([&] { settle({.trigger = trigger}, 4); }).find("--trigger"),
              std::string::npos)
        << trigger;
  }
}

TEST(ImagesOptions, TheTrainerGetsThem) {
  const train::Options options = training_options(settle({.batch = 32,
                                                          .seed = 7,
                                                          .sync_period = 5,
                                                          .no_overlap = true,
                                                          .clip = 2.0,
                                                          .clip_mode = "delayed",
                                                          .non_finite = "skip"},
                                                         4),
                                                  4, 100);
  EXPECT_EQ(options.seed, 7);
  EXPECT_EQ(options.batch, 32);
  EXPECT_EQ(options.sync_period, 5);
  EXPECT_FALSE(options.overlap);
  EXPECT_EQ(options.clip, train::Clip::Delayed);
  EXPECT_EQ(options.clip_norm, 2);
  EXPECT_EQ(options.non_finite, train::NonFinite::Skip);
  // cosine:5% of 100 steps of 32 samples on 4 workers: 1 after 640 samples, 0 after 12800.
  EXPECT_DOUBLE_EQ(options.learning_rate(640), 1);
  EXPECT_NEAR(options.learning_rate(12800), 0, 1e-12);
  const auto adam = std::get<train::AccumAdamW>(
      make_optimizer(settle({.optimizer = "accum-adamw", .beta2 = 0.95, .window = 8}, 4)));
  EXPECT_EQ(adam.beta2, 0.95);
  EXPECT_EQ(adam.window, 8);
}

}  // namespace
}  // namespace starling::workload
