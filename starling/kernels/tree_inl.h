// The summation tree of sum.h, shared by sum and mix. Compiled once per instruction set.
//
// Words: a term is one leaf of the tree (a source, or a weighted source); a group is up to eight
// terms, whose subtree is evaluated in registers; since eight is a power of two every full group is
// a subtree of the whole. Beyond one group the buffer is cut into chunks that fit the first-level
// cache several times over. Sums of finished subtrees of a chunk are pending, newest last, and are
// merged as a binary counter carries: group g is merged with as many pending sums as g has
// trailing ones, and the last group with all of them.
#if defined(STARLING_KERNELS_TREE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STARLING_KERNELS_TREE_INL_H_
#undef STARLING_KERNELS_TREE_INL_H_
#else
#define STARLING_KERNELS_TREE_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <limits>
#include <span>

#include "starling/base/error.h"
#include "starling/kernels/fill_inl.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

inline constexpr std::size_t kGroup = 8;
inline constexpr std::size_t kLine = 64;          // bytes
inline constexpr std::size_t kChunkBytes = 4096;  // one page of each source at a time
inline constexpr std::size_t kPendingMax = 16;    // enough for 8 * 2^16 sources

// What is done to a sum that is not yet the result: nothing.
struct Partial {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return v;
  }
};

// Which of two NaNs an addition hands on depends on the order of its operands, which a compiler may
// swap: one NaN for all.
template <class D, class V>
HWY_INLINE V one_nan(D d, V v) {
  const auto nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  return hn::IfThenElse(hn::IsNaN(v), nan, v);
}

// The newest `count` pending sums of a chunk, which end before `end`.
template <typename T>
struct Pending {
  const T* end = nullptr;
  std::size_t count = 0;

  template <class D, class V>
  HWY_INLINE V merge(D d, std::size_t i, V v) const {
    for (std::size_t m = 1; m <= count; ++m) {
      v = hn::Add(hn::LoadU(d, end - m * (kChunkBytes / sizeof(T)) + i), v);
    }
    return v;
  }
};

struct NothingPending {
  template <class D, class V>
  HWY_INLINE V merge(D, std::size_t, V v) const {
    return v;
  }
};

// A group's part of a buffer: its first term, and where in the sources it begins.
struct Part {
  std::size_t first = 0;
  std::size_t begin = 0;
  std::size_t size;
};

// One group's subtree, merged with pending sums.
template <std::size_t kCount, class Term, class Merge, class Finish>
struct Node {
  Term terms[kCount];
  Merge pending;
  Finish finish;

  template <std::size_t kFirst, std::size_t kTerms, class D>
  HWY_INLINE hn::Vec<D> tree(D d, std::size_t i) const {
    if constexpr (kTerms == 1) {
      return terms[kFirst](d, i);
    } else {
      constexpr std::size_t kLeft = std::bit_floor(kTerms - 1);
      return hn::Add(tree<kFirst, kLeft>(d, i), tree<kFirst + kLeft, kTerms - kLeft>(d, i));
    }
  }

  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    return finish(d, pending.merge(d, i, tree<0, kCount>(d, i)));
  }
};

template <std::size_t kCount, class Terms, class Merge, class Finish, typename T>
HWY_INLINE void node(T* into, Part part, const Terms& terms, Merge pending, Finish finish,
                     Store store) {
  Node<kCount, typename Terms::Term, Merge, Finish> expression{{}, pending, finish};
  for (std::size_t j = 0; j < kCount; ++j) {
    expression.terms[j] = terms.term(part.first + j, part.begin);
  }
  const hn::ScalableTag<T> d;
  if (store == Store::Streaming) {
    stream(d, into, part.size, expression);
  } else {
    fill(d, into, part.size, expression);
  }
}

// The last group, of 1 … kGroup terms.
template <class Terms, class Finish, typename T>
void last_node(T* into, Part part, const Terms& terms, Pending<T> pending, Finish finish,
               Store store) {
  switch (terms.count() - part.first) {
    case 1:
      return node<1>(into, part, terms, pending, finish, store);
    case 2:
      return node<2>(into, part, terms, pending, finish, store);
    case 3:
      return node<3>(into, part, terms, pending, finish, store);
    case 4:
      return node<4>(into, part, terms, pending, finish, store);
    case 5:
      return node<5>(into, part, terms, pending, finish, store);
    case 6:
      return node<6>(into, part, terms, pending, finish, store);
    case 7:
      return node<7>(into, part, terms, pending, finish, store);
    default:  // eight sources and nothing else just fit the registers
      return pending.count == 0 ? node<kGroup>(into, part, terms, NothingPending{}, finish, store)
                                : node<kGroup>(into, part, terms, pending, finish, store);
  }
}

// One chunk of more than one group. `memory` holds the pending sums.
template <class Terms, class Finish, typename T>
void chunk(T* into, Part part, const Terms& terms, T* memory, Finish finish, Store store) {
  constexpr std::size_t kChunk = kChunkBytes / sizeof(T);
  std::size_t count = 0;  // pending
  for (std::size_t g = 0; part.first + kGroup < terms.count(); ++g, part.first += kGroup) {
    const auto merges = static_cast<std::size_t>(std::countr_one(g));
    const Pending<T> pending{memory + count * kChunk, merges};
    count -= merges;
    node<kGroup>(memory + count * kChunk, part, terms, pending, Partial{}, Store::Cached);
    ++count;
  }
  last_node(into, part, terms, Pending<T>{memory + count * kChunk, count}, finish, store);
}

// into = finish(tree over terms).
template <class Terms, class Finish, typename T>
void reduce(std::span<T> into, const Terms& terms, Finish finish, Store store) {
  if (terms.count() <= kGroup) {
    last_node(into.data(), Part{.size = into.size()}, terms, Pending<T>{}, finish, store);
  } else {
    constexpr std::size_t kChunk = kChunkBytes / sizeof(T);
    check(terms.count() <= kGroup << kPendingMax, "a sum of {} sources", terms.count());
    HWY_ALIGN T memory[kPendingMax * kChunk];
    // Chunks end at line boundaries of the result, so that streaming stores fill whole lines.
    std::size_t size = kChunk - kLine / sizeof(T) + elements_to_boundary(into.data(), kLine);
    for (std::size_t begin = 0; begin < into.size(); begin += size, size = kChunk) {
      size = HWY_MIN(size, into.size() - begin);
      chunk(into.data() + begin, Part{.begin = begin, .size = size}, terms, memory, finish, store);
    }
  }
  if (store == Store::Streaming) {
    hwy::FlushStream();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#endif  // guard per target
