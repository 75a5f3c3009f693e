#include "starling/launch/lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace starling::launch {
namespace {

std::vector<std::string> cut(const std::vector<std::string>& pieces) {
  std::vector<std::string> all;
  const auto keep = [&](std::string_view line) { all.emplace_back(line); };
  Lines lines;
  for (const std::string& piece : pieces) {
    lines.take(piece, keep);
  }
  lines.finish(keep);
  return all;
}

using Texts = std::vector<std::string>;

TEST(Lines, TheSameHoweverTheBytesArrive) {
  const std::string text = "one\n\ntwo\r\nthree";
  const Texts expected = {"one", "", "two\r", "three"};
  for (std::size_t step = 1; step <= text.size(); ++step) {
    Texts pieces;
    for (std::size_t at = 0; at < text.size(); at += step) {
      pieces.push_back(text.substr(at, step));
    }
    EXPECT_EQ(cut(pieces), expected) << "in pieces of " << step;
  }
}

TEST(Lines, NothingIsNoLine) {
  EXPECT_EQ(cut({}), Texts{});
  EXPECT_EQ(cut({""}), Texts{});
  EXPECT_EQ(cut({"\n"}), Texts{""});
}

TEST(Lines, EveryByteIsKept) {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte != '\n') {
      text += static_cast<char>(byte);
    }
  }
  EXPECT_EQ(cut({text + "\n" + text}), (Texts{text, text}));
}

TEST(Lines, ALineWithoutEndIsCut) {
  const std::string piece(65536, 'x');
  const std::size_t count = 2 * kLongestLine / piece.size() + 1;
  const Texts lines = cut(Texts(count, piece));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].size(), kLongestLine);
  EXPECT_EQ(lines[1].size(), kLongestLine);
  EXPECT_EQ(lines[2].size(), piece.size());
}

}  // namespace
}  // namespace starling::launch
