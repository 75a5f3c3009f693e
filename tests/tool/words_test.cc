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
