#include "starling/comm/segments.h"

#include <gtest/gtest.h>

#include "starling/base/random.h"

namespace starling::comm {
namespace {

// Segments lie end to end over all bytes; chunks lie end to end over their segment; every cut but
// the last is a multiple of 64; segments differ by at most one grain, chunks are as long as asked.
void check_cuts(std::size_t bytes, std::size_t count, std::size_t chunk) {
  SCOPED_TRACE(testing::Message() << bytes << " bytes, " << count << " segments, chunk " << chunk);
  const Segments cut(bytes, count, chunk);
  std::size_t at = 0;
  std::size_t shortest = bytes;
  std::size_t longest = 0;
  for (std::size_t j = 0; j < count; ++j) {
    const Segments::Range segment = cut.segment(j);
    ASSERT_EQ(segment.begin, at);
    ASSERT_LE(segment.begin, segment.end);
    ASSERT_TRUE(segment.end % 64 == 0 || segment.end == bytes);
    std::size_t inside = segment.begin;
    for (std::size_t q = 0; q < cut.chunks(); ++q) {
      const Segments::Range piece = cut.chunk(j, q);
      ASSERT_EQ(piece.begin, inside);
      ASSERT_LE(piece.end, segment.end);
      ASSERT_LE(piece.size(), cut.chunk_bytes());
      ASSERT_TRUE(piece.end % 64 == 0 || piece.end == bytes);
      ASSERT_TRUE(piece.size() == cut.chunk_bytes() || piece.end == segment.end);
      ASSERT_EQ(piece.empty(), piece.size() == 0);
      inside = piece.end;
    }
    ASSERT_EQ(inside, segment.end);
    at = segment.end;
    shortest = std::min(shortest, segment.size());
    longest = std::max(longest, segment.size());
  }
  ASSERT_EQ(at, bytes);
  ASSERT_LE(longest - shortest, 64u);
  ASSERT_GE(cut.chunks(), 1u);
}

TEST(Segments, RandomSizesAreCutExactly) {
  RandomSequence draw{Random(1)};
  for (int i = 0; i < 3000; ++i) {
    const std::size_t bytes = 1 + draw.below(std::uint64_t{1} << (1 + draw.below(20)));
    const std::size_t count = 1 + draw.below(70);
    const std::size_t chunk = draw.below(4) == 0 ? 0 : 64 + draw.below(100'000);
    check_cuts(bytes, count, chunk);
  }
}

TEST(Segments, SizesAtTheBordersAreCutExactly) {
  for (std::size_t bytes : {1u, 4u, 63u, 64u, 65u, 127u, 128u, 129u, 4096u}) {
    for (std::size_t count : {1u, 2u, 3u, 64u, 65u, 1000u}) {
      for (std::size_t chunk : {0u, 1u, 63u, 64u, 65u, 4096u}) {
        check_cuts(bytes, count, chunk);
      }
    }
  }
}

TEST(Segments, WithoutAChunkLengthASegmentIsOneChunk) {
  const Segments cut(1'000'000, 7, 0);
  EXPECT_EQ(cut.chunks(), 1u);
  for (std::size_t j = 0; j < 7; ++j) {
    EXPECT_EQ(cut.chunk(j, 0).begin, cut.segment(j).begin);
    EXPECT_EQ(cut.chunk(j, 0).end, cut.segment(j).end);
  }
}

TEST(Segments, ChunkLengthsAreRoundedUpToTheGrain) {
  EXPECT_EQ(Segments(10'000, 1, 100).chunk_bytes(), 128u);
  EXPECT_EQ(Segments(10'000, 1, 128).chunk_bytes(), 128u);
  EXPECT_EQ(Segments(10'000, 1, 1).chunk_bytes(), 64u);
}

TEST(Segments, MoreMembersThanGrainsLeaveSomeWithNothing) {
  const Segments cut(100, 10, 0);
  std::size_t empty = 0;
  for (std::size_t j = 0; j < 10; ++j) {
    empty += cut.segment(j).empty() ? 1 : 0;
  }
  EXPECT_EQ(empty, 8u);
}

}  // namespace
}  // namespace starling::comm
