#include "starling/tool/plan_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/model/plan.h"
#include "starling/tool/figures_command.h"
#include "starling/tool/plan_measurement.h"
#include "starling/tool/plan_report.h"
#include "starling/tool/plan_simulation.h"
#include "starling/tool/words.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;

struct Request {
  std::optional<std::uint32_t> workers;
  // What is measured.
  std::string model = "mlp";
  std::string data = "fashion-mnist";
  std::string data_folder;
  std::uint64_t batch = 64;
  std::string optimizer;
  std::optional<std::uint64_t> threads;
  std::optional<std::uint64_t> parameters;
  std::optional<double> step_seconds;
  std::string compute;
  std::uint64_t steps = 40;
  std::string out = "starling-profile.json";
  std::uint64_t verify = 0;
  std::uint64_t top = 5;
  // What is asked.
  std::string profile;
  std::optional<std::uint32_t> per_node;
  std::string bandwidth;
  std::optional<double> latency;
  std::string bucket_bytes;
  std::uint64_t seed = 0;
  std::string plot;
  bool json = false;
};

Words trainer_words(const Request& r) {
  Words words;
  const auto add = [&](const char* option, const auto& value) {
    words.push_back(option);
    words.push_back(fmt::format("{}", value));
  };
  if (r.workers) {
    add("--workers", *r.workers);
  }
  if (r.parameters || r.step_seconds || !r.compute.empty()) {
    require(r.step_seconds || !r.compute.empty(),
            "--parameters {}: say with --step-seconds or --compute how long a step computes",
            r.parameters.value_or(0));
    require(!r.step_seconds || r.compute.empty(),
            "--step-seconds and --compute say the same thing twice");
    add("--model", r.parameters ? fmt::format("flat:{}", *r.parameters) : r.model);
    add("--emulate-compute",
        r.step_seconds ? fmt::format("constant:{}", *r.step_seconds) : r.compute);
  } else {
    add("--model", r.model);
  }
  add("--data", r.data);
  if (!r.data_folder.empty()) {
    add("--data-folder", r.data_folder);
  }
  add("--batch", r.batch);
  if (!r.optimizer.empty()) {
    add("--optimizer", r.optimizer);
  }
  if (r.threads) {
    add("--threads", *r.threads);
  }
  if (!r.bucket_bytes.empty()) {
    add("--bucket-bytes", parse_bytes(r.bucket_bytes).value);
  }
  add("--steps", r.steps);
  add("--seed", r.seed);
  if (r.verify > 0) {
    add("--verify", r.verify);
    add("--verify-top", r.top);
    if (!r.bucket_bytes.empty()) {
      add("--verify-bucket-bytes", parse_bytes(r.bucket_bytes).value);
    }
  }
  return words;
}

model::Question question_of(const Request& r) {
  model::Question question;
  if (!r.profile.empty()) {
    question.workers = r.workers;
  }
  question.per_node = r.per_node;
  if (!r.bandwidth.empty()) {
    question.bandwidth = static_cast<double>(parse_bytes(r.bandwidth).value);
    require(*question.bandwidth > 0, "--bandwidth must be more than 0 bytes per second");
  }
  require(!r.latency || !std::isnan(*r.latency), "--latency {} is no time", r.latency.value_or(0));
  question.latency = r.latency;
  if (!r.bucket_bytes.empty()) {
    question.bucket_bytes = parse_bytes(r.bucket_bytes).value;
    require(*question.bucket_bytes > 0, "--bucket-bytes must be more than 0");
  }
  question.seed = r.seed;
  return question;
}

// Predicted, simulated and measured, of whatever was trained with.
std::vector<Verified> verified(const model::Profile& profile, const model::Question& question) {
  std::vector<Verified> rows;
  for (const model::Trained& run : profile.trained) {
    model::Candidate candidate;
    candidate.algorithm = &topology::find_algorithm(run.algorithm);
    candidate.pattern = run.pattern;
    candidate.sync_period = run.sync_period;
    const model::Choice choice =
        model::predict_choice(profile, question, candidate, run.bucket_bytes);
    rows.push_back({.name = title(candidate),
                    .model = choice.prediction.step,
                    .simulated = simulate_choice(profile, choice, run.steps, question.seed),
                    .measured = run.step,
                    .interval = run.interval});
  }
  return rows;
}

// Before anything is measured.
void require_writable(const char* option, const fs::path& file) {
  require(!file.empty(), "{}: no file is named", option);
  const fs::path folder = fs::absolute(file).parent_path();
  require(fs::is_directory(folder), "{} {}: there is no folder {}", option, file.string(),
          folder.string());
  require(!fs::is_directory(file), "{} {}: this is a folder", option, file.string());
  const fs::path& changed = fs::exists(file) ? file : folder;
  require(access(changed.c_str(), W_OK) == 0, "{} {}: {} cannot be written", option, file.string(),
          changed.string());
}

// Whether this process has something to report.
bool measure(const Request& request) {
  require(request.plot.empty() || request.verify > 0,
          "--plot {}: there is nothing to hold predictions against without --verify", request.plot);
  require(!request.per_node && request.bandwidth.empty() && !request.latency,
          "--per-node, --bandwidth and --latency ask about a profile: say which with --profile");
  if (reports()) {
    require_writable("--out", request.out);
  }
  measure_profile(trainer_words(request), fs::absolute(request.out));
  return reports();
}

void run(const Request& request) {
  const model::Question question = question_of(request);
  require(request.workers.value_or(2) >= 2,
          "one worker: there is nothing to decide, it trains alone");
  if (!request.plot.empty() && reports()) {
    require_writable("--plot", request.plot);
  }
  if (request.profile.empty() && !measure(request)) {
    return;
  }
  const std::string& file = request.profile.empty() ? request.out : request.profile;
  const model::Profile profile = model::read_profile(file);
  const model::Plan plan = model::make_plan(profile, question);
  const bool compares = !question.is_what_if(profile) && !profile.trained.empty();
  const PlanReport report{
      .profile = profile,
      .question = question,
      .plan = plan,
      .verified = compares ? verified(profile, question) : std::vector<Verified>()};
  if (!request.plot.empty()) {
    require(!report.verified.empty(), "--plot {}: nothing was measured to hold predictions against",
            request.plot);
    std::ofstream plot(request.plot);
    plot << draw_verification(report.verified);
    plot.close();
    require(!plot.fail(), "cannot write {}", request.plot);
  }
  if (request.json) {
    fmt::print("{}\n", json_of(report).dump(2));
    return;
  }
  fmt::print("{}", text_of(report));
  if (request.profile.empty()) {
    fmt::print("\nthe profile is in {}: `starling plan --profile {}` asks it again\n", file, file);
  }
}

void add_options(CLI::App& plan, Request& r) {
  const char* measured = "What is measured";
  const CLI::Range some(std::uint64_t{1}, std::uint64_t{1'000'000}, "1 … 1000000");
  plan.add_option(
          "-n,--workers", r.workers,
          "Workers to start here, or under a launcher as many as there are; with --profile: "
          "what if there were so many")
      ->check(CLI::Range(1, 1 << 20));
  plan.add_option("--model", r.model, "A model of `starling train images`")
      ->capture_default_str()
      ->group(measured);
  plan.add_option("--data", r.data, "What it trains on")->capture_default_str()->group(measured);
  plan.add_option("--data-folder", r.data_folder, "Where data sets are")->group(measured);
  plan.add_option("--batch", r.batch, "Samples of one worker's step")
      ->check(some)
      ->capture_default_str()
      ->group(measured);
  plan.add_option("--optimizer", r.optimizer, "As of `starling train images`")->group(measured);
  plan.add_option("--threads", r.threads, "Compute threads of a worker")
      ->check(CLI::Range(0, 4096))
      ->group(measured);
  plan.add_option("--parameters", r.parameters,
                  "In place of a model: so many parameters, whose computation is slept")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{4'000'000'000}))
      ->group(measured);
  plan.add_option("--step-seconds", r.step_seconds, "How long a step of theirs computes")
      ->check(CLI::Range(0.0, 3600.0))
      ->group(measured);
  plan.add_option("--compute", r.compute,
                  "The same with variation: constant:S, normal:MEAN,VARIANCE, "
                  "lognormal:MEAN,VARIANCE, "
                  "FORWARD:BACKWARD[:CV], draw:NAME:MEAN")
      ->group(measured);
  plan.add_option("--steps", r.steps, "Steps of computation that are measured")
      ->check(some)
      ->capture_default_str()
      ->group(measured);
  plan.add_option("--out", r.out, "File of the profile")->capture_default_str()->group(measured);
  plan.add_option("--verify", r.verify,
                  "Then train so many steps with the most promising, and say how far off the model "
                  "and the virtual network are")
      ->check(CLI::Range(0, 1'000'000))
      ->group(measured);
  plan.add_option("--top", r.top, "How many of them, beside all-reduce")
      ->check(CLI::Range(1, 100))
      ->capture_default_str()
      ->group(measured);
  const char* asked = "What is asked";
  CLI::Option* profile =
      plan.add_option("--profile", r.profile, "Predict from this file without measuring")
          ->check([](const std::string& file) {
            return file.empty() ? std::string("no file is named") : std::string();
          })
          ->group(asked);
  for (CLI::Option* option :
       plan.get_options([&](const CLI::Option* each) { return each->get_group() == measured; })) {
    option->excludes(profile);
  }
  plan.add_option("--per-node", r.per_node, "What if so many workers shared a node")
      ->check(CLI::Range(1, 1 << 20))
      ->group(asked);
  plan.add_option("--bandwidth", r.bandwidth, "… nodes had so many bytes per second, such as 125M")
      ->group(asked);
  plan.add_option("--latency", r.latency, "… and so many seconds from one to the other")
      ->check(CLI::Range(0.0, 3600.0))
      ->group(asked);
  plan.add_option("--bucket-bytes", r.bucket_bytes,
                  "Buckets of so many bytes, such as 25Mi; default: whatever is fastest")
      ->group(asked);
  plan.add_option("--plot", r.plot, "Of what was verified: predicted against measured, an SVG file")
      ->group(asked);
  plan.add_option("--seed", r.seed, "Of what is drawn")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group(asked);
  plan.add_flag("--json", r.json, "Print one JSON object (docs/commands.md)");
}

}  // namespace

void add_plan_command(CLI::App& app) {
  CLI::App* plan = app.add_subcommand(
      "plan", "Measure for a minute; predict every algorithm's step time; recommend one");
  auto request = std::make_shared<Request>();  // lives as long as the options that write to it
  add_options(*plan, *request);
  add_figures_command(*plan);
  plan->callback([plan, request] {
    if (plan->get_subcommands().empty()) {
      run(*request);
    }
  });
}

}  // namespace starling::tool
