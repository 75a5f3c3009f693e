#include "starling/comm/held_model.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/averaging.h"

namespace starling::comm {
namespace {

// Between two of these the engine sees to its messages.
constexpr std::size_t kPiece = std::size_t{1} << 20;

std::unique_ptr<ModelMemory> memory_of(Engine& engine, const ModelShape& shape) {
  return std::make_unique<ModelMemory>(engine, shape);
}

}  // namespace

HeldModel::HeldModel(Engine& engine, const ModelShape& shape, bool rounded)
    : engine_(engine),
      shape_(shape),
      rounded_(rounded),
      free_(engine),
      y_(memory_of(engine, shape)) {}

Task<ConstBuffer> HeldModel::lock_to_read() {
  while (locked_) {
    co_await free_;
  }
  locked_ = true;
  if (share_) {
    co_await write_shared();
  }
  co_return ConstBuffer{shape_.type, y_->buffer().blob};
}

Task<HeldModel::Update> HeldModel::lock() {
  while (locked_) {
    co_await free_;
  }
  locked_ = true;
  if (share_) {
    const double share = *std::exchange(share_, std::nullopt);
    co_return Update{{shape_.type, result_->buffer().blob}, y_->buffer(), share};
  }
  if (!under_way_ || touched_) {
    co_return Update{{shape_.type, y_->buffer().blob}, y_->buffer()};
  }
  // Others read y: it stays as it is.
  if (before_ == nullptr) {
    before_ = memory_of(engine_, shape_);
  }
  touched_ = true;
  std::swap(y_, before_);
  co_return Update{{shape_.type, before_->buffer().blob}, y_->buffer()};
}

void HeldModel::unlock(std::int64_t updates) {
  check(locked_, "the model is not locked");
  updates_ = updates;
  free();
}

void HeldModel::free() {
  locked_ = false;
  free_.raise();
  if (on_free_) {
    on_free_();
  }
}

Contribution::Pass HeldModel::begin() {
  check(!under_way_ && !locked_, "a round begins in the middle of another, or of an update");
  if (result_ == nullptr) {
    result_ = memory_of(engine_, shape_);
  }
  under_way_ = true;
  touched_ = false;
  locked_ = share_.has_value();  // until ready() has written y
  return {.in = {shape_.type, y_->buffer().blob}, .out = result_->buffer(), .step = Step{updates_}};
}

Task<void> HeldModel::ready(std::size_t) {
  if (share_) {
    co_await write_shared();
    free();
  }
}

// average + (y - y at the start), as a mix.
HeldModel::Terms HeldModel::terms_of(const Outcome& outcome) const {
  const Weights weights = weights_of(Rule::Mean, outcome, outcome.own);
  Terms terms{{result_->buffer().blob}, {weights.of_result}};
  terms.rounded = rounded_ && !weights.exact;
  if (touched_ || terms.rounded) {
    const ConstBlob start = touched_ ? before_->buffer().blob : y_->buffer().blob;
    terms.sources.insert(terms.sources.end(), {y_->buffer().blob, start});
    terms.shares.insert(terms.shares.end(), {1, weights.of_own - 1});
  } else if (weights.of_own != 0) {
    terms.sources.push_back(y_->buffer().blob);
    terms.shares.push_back(weights.of_own);
  }
  return terms;
}

Task<void> HeldModel::end(Outcome& outcome) {
  while (locked_) {
    co_await free_;
  }
  locked_ = true;
  Terms terms = terms_of(outcome);
  if (terms.sources.size() == 1 && shape_.bytes() > 0) {
    share_ = terms.shares.front();
  } else {
    co_await write(std::move(terms));
  }
  under_way_ = false;
  outcome.own_at_end = Step{updates_};
  unlock(updates_);
}

Task<void> HeldModel::write_shared() {
  Terms terms{{result_->buffer().blob}, {*share_}};
  co_await write(std::move(terms));
  share_.reset();
}

Task<void> HeldModel::write(Terms terms) {
  const Scratch start = engine_.arithmetic().scratch(terms.rounded ? kPiece : 0);
  std::vector<ConstBlob> pieces(terms.sources.size());
  for (std::size_t at = 0; at < shape_.bytes(); at += kPiece) {
    const std::size_t end = std::min(shape_.bytes(), at + kPiece);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      pieces[i] = terms.sources[i].slice(at, end);
    }
    if (terms.rounded) {
      engine_.arithmetic().through_bf16(shape_.type, start.blob().slice(0, end - at),
                                        pieces.back());
      pieces.back() = start.blob().slice(0, end - at);
    }
    engine_.arithmetic().mix(shape_.type, y_->buffer().blob.slice(at, end), pieces, terms.shares);
    co_await engine_.yield();
  }
}

void HeldModel::drop() {
  under_way_ = false;
  if (share_ && locked_) {  // it was interrupted before y was written
    free();
  }
}

}  // namespace starling::comm
