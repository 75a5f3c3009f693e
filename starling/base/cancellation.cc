#include "starling/base/cancellation.h"

#include <utility>

#include "starling/base/error.h"

namespace starling {

void Cancellation::Subscriber::leave() {
  if (source_ == nullptr) {
    return;
  }
  (previous_ != nullptr ? previous_->next_ : source_->first_) = next_;
  if (next_ != nullptr) {
    next_->previous_ = previous_;
  }
  source_ = nullptr;
  previous_ = next_ = nullptr;
}

Cancellation::~Cancellation() {
  while (first_ != nullptr) {
    first_->leave();
  }
}

void Cancellation::request(std::exception_ptr reason) {
  if (requested()) {
    return;
  }
  reason_ = std::move(reason);
  while (first_ != nullptr) {
    Subscriber& subscriber = *first_;
    subscriber.leave();
    subscriber.on_cancel(reason_);
  }
}

void Cancellation::subscribe(Subscriber& subscriber) {
  check(subscriber.source_ == nullptr, "subscribed twice");
  if (requested()) {
    subscriber.on_cancel(reason_);
    return;
  }
  subscriber.source_ = this;
  subscriber.next_ = first_;
  if (first_ != nullptr) {
    first_->previous_ = &subscriber;
  }
  first_ = &subscriber;
}

}  // namespace starling
