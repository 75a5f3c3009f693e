#include "starling/kernels/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "starling/base/error.h"
#include "tests/kernels/every_target.h"
#include "tests/kernels/reference.h"

namespace starling::kernels {
namespace {

class Copies : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Kernels, Copies, every_target(), target_name);

TEST_P(Copies, AnyLengthAnyAlignment) {
  std::vector<std::byte> from(70'000);
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<std::byte>(Random(5).bits(i));
  }
  std::vector<std::size_t> sizes = {255, 1000, 65'537};
  for (std::size_t n = 0; n <= 140; ++n) {
    sizes.push_back(n);
  }
  for (const std::size_t size : sizes) {
    for (std::size_t offset = 0; offset < 33; ++offset) {
      for (const Store store : {Store::Cached, Store::Streaming}) {
        const std::span<const std::byte> part(from.data() + offset * 7 % 33, size);
        Guarded<std::byte> into(size, offset);
        kernels::copy(into.span(), part, store);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), into.span().begin()));
        into.expect_guards_untouched();
      }
    }
  }
}

TEST(CopyContract, SizesAgree) {
  std::vector<std::byte> a(4);
  const std::vector<std::byte> b(5);
  EXPECT_THROW(kernels::copy(a, b), Error);
  kernels::copy(a, a, Store::Streaming);
}

}  // namespace
}  // namespace starling::kernels
