#include "starling/kernels/sum_to_all.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "starling/base/error.h"
#include "starling/kernels/sum.h"
#include "tests/kernels/every_target.h"
#include "tests/kernels/reference.h"

namespace starling::kernels {
namespace {

// Results that begin `shift` elements past a line, with a fence of known values around each.
template <typename T>
class Results {
 public:
  Results(std::size_t count, std::size_t size, std::size_t shift) : size_(size) {
    for (std::size_t r = 0; r < count; ++r) {
      memory_.emplace_back(size + 3 * kLine, T{-7});
      const auto past = reinterpret_cast<std::uintptr_t>(memory_.back().data()) % 64 / sizeof(T);
      begins_.push_back(kLine + (past == 0 ? 0 : kLine - past) + shift);
      places_.push_back(memory_.back().data() + begins_.back());
    }
  }
  std::span<T* const> places() const { return places_; }

  void expect(const std::vector<T>& sum) const {
    for (std::size_t r = 0; r < places_.size(); ++r) {
      EXPECT_EQ(std::memcmp(places_[r], sum.data(), size_ * sizeof(T)), 0) << "result " << r;
      for (std::size_t i = 0; i < memory_[r].size(); ++i) {
        if (i < begins_[r] || i >= begins_[r] + size_) {
          ASSERT_EQ(memory_[r][i], T{-7}) << "written outside, at " << i;
        }
      }
    }
  }

 private:
  static constexpr std::size_t kLine = 64 / sizeof(T);
  std::size_t size_;
  std::vector<std::vector<T>> memory_;
  std::vector<std::size_t> begins_;
  std::vector<T*> places_;
};

template <typename T>
void compare_with_sum(std::size_t sources, std::size_t results, std::size_t size,
                      std::size_t shift) {
  SCOPED_TRACE(testing::Message() << sources << " sources, " << results << " results of " << size
                                  << ", shifted by " << shift);
  std::vector<std::vector<T>> memory;
  std::vector<const T*> from;
  for (std::size_t j = 0; j < sources; ++j) {
    memory.push_back(values<T>(size + 5, 100 + j));
  }
  for (std::size_t j = 0; j < sources; ++j) {
    from.push_back(memory[j].data() + j % 5);
  }
  std::vector<T> sum_here(size);
  sum(std::span(sum_here), from);
  const Results<T> all(results, size, shift);
  sum_to_all(all.places(), size, from);
  all.expect(sum_here);
}

template <typename T>
void compare_all() {
  for (const std::size_t sources : {1, 2, 3, 4, 5, 6, 7, 8, 9, 20}) {
    for (const std::size_t size : {1, 7, 31, 32, 33, 64, 1000, 10007}) {
      compare_with_sum<T>(sources, 1 + sources % 4, size, 0);
      compare_with_sum<T>(sources, sources, size, 3);
    }
  }
}

class SumToAll : public EveryTarget {};

TEST_P(SumToAll, HasTheBitsOfTheSum) {
  compare_all<float>();
  compare_all<double>();
}

INSTANTIATE_TEST_SUITE_P(Targets, SumToAll, every_target(), target_name);

TEST(SumToAllInput, OfNothingIsRefused) {
  std::vector<float> result(8);
  std::vector<float*> into = {result.data()};
  EXPECT_THROW(sum_to_all(std::span<float* const>(into), 8, std::span<const float* const>()),
               Error);
}

}  // namespace
}  // namespace starling::kernels
