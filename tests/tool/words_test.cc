#include "starling/tool/words.h"

#include <gtest/gtest.h>

#include "starling/base/error.h"

namespace starling::tool {
namespace {

TEST(Words, AreSplitAsAShellDoes) {
  EXPECT_EQ(split_words("  --lr 0.1\t--delay  1x0.1 "), (Words{"--lr", "0.1", "--delay", "1x0.1"}));
  EXPECT_EQ(split_words("--data-folder 'my data'/x \"it's\" ''"),
            (Words{"--data-folder", "my data/x", "it's", ""}));
  EXPECT_EQ(split_words(""), Words());
  EXPECT_THROW(split_words("--lr '0.1"), Error);
}

TEST(Words, AreJoinedSoThatTheySplitAgain) {
  const Words words = {"--trigger", "first+0.01", "--data-folder", "my data", ""};
  EXPECT_EQ(join_words(words), "--trigger first+0.01 --data-folder 'my data' ''");
  EXPECT_EQ(split_words(join_words(words)), words);
}

TEST(Words, OfAConfigurationGoBeforeThoseOfAll) {
  const Words common = {"images", "-n",     "4",       "--epochs=3", "--lr",
                        "-1",     "--bf16", "--model", "mlp"};
  EXPECT_EQ(with_own(common, {"--lr", "0.5"}),
            (Words{"images", "-n", "4", "--epochs=3", "--bf16", "--model", "mlp", "--lr", "0.5"}));
  EXPECT_EQ(
      with_own(common, {"--workers=8", "--bf16"}),
      (Words{"images", "--epochs=3", "--lr", "-1", "--model", "mlp", "--workers=8", "--bf16"}));
  EXPECT_EQ(with_own(common, {"--steps", "7"}),
            (Words{"images", "-n", "4", "--lr", "-1", "--bf16", "--model", "mlp", "--steps", "7"}));
  EXPECT_EQ(with_own(common, {}), common);
}

TEST(Words, MeanTheSameInAnyOrderAndSpelling) {
  const Words then = {"images", "--seed", "0", "-n", "4", "--lr", "0.1", "--bf16"};
  EXPECT_EQ(difference_of(then, then), "");
  for (const char* now :
       {"images --seed 0 --bf16 --lr 0.1 -n 4", "images --lr=0.1 --seed=0 --bf16 -n4",
        "images --bf16 --workers 4 --seed 0 --lr 0.1",
        "images --workers=4 --lr=0.1 --seed 0 --bf16"}) {
    EXPECT_EQ(difference_of(split_words(now), then), "") << now;
  }
}

TEST(Words, ThatDifferAreNamed) {
  const auto difference = [](const char* now, const char* then) {
    return difference_of(split_words(now), split_words(then));
  };
  EXPECT_EQ(difference("images --lr=0.2 -n 4", "images -n 4 --lr 0.1"),
            "'--lr 0.1' then, '--lr 0.2' now");
  EXPECT_EQ(difference("images -n 4 --batch 32", "images -n 4"), "nothing then, '--batch 32' now");
  EXPECT_EQ(difference("images -n 4", "images --bf16 -n 4"), "'--bf16' then, nothing now");
  EXPECT_EQ(difference("images --batch 4", "images --window 4"), "nothing then, '--batch 4' now");
  EXPECT_EQ(difference("images", "texts"), "'texts' then, 'images' now");
  EXPECT_EQ(difference("images --x=", "images --x"), "'--x' then, '--x ''' now");
  // Which of two values is the last one matters, and so does what follows which option.
  EXPECT_EQ(difference("images --x 1 --x 2", "images --x 2 --x 1"), "'--x 2' then, '--x 1' now");
  EXPECT_EQ(difference("images --x 1 --x 2", "images --x 1"), "nothing then, '--x 2' now");
  EXPECT_NE(difference("images --x 1 --y 2", "images --x 2 --y 1"), "");
  EXPECT_NE(difference("images --x 1 b --y 2", "images --x 1 --y 2 b"), "");
}

TEST(Words, AreTakenWithTheirValue) {
  Words words = {"images", "--lr", "0.1", "--out=x", "--last"};
  EXPECT_EQ(take(words, "--out"), "x");
  EXPECT_EQ(take(words, "--lr"), "0.1");
  EXPECT_EQ(take(words, "--last"), std::nullopt);
  EXPECT_EQ(take(words, "--epochs"), std::nullopt);
  EXPECT_EQ(words, (Words{"images", "--last"}));
}

}  // namespace
}  // namespace starling::tool
