#include "starling/comm/trigger.h"

namespace starling::comm {
namespace {

class InPerson final : public Trigger {
 public:
  explicit InPerson(Host& host) : host_(host) {}
  void arrived(Version) override {
    arrived_at_ = host_.now();
    host_.wake();
  }
  bool may_start(Version, bool arrived) override { return arrived; }
  Activation activation(Version) const override {
    return {.by = host_.rank(), .at = arrived_at_, .hops = 0};
  }

 private:
  Host& host_;
  Time arrived_at_{};
};

}  // namespace

std::unique_ptr<Trigger> make_trigger(const TriggerOptions& options, Trigger::Host& host) {
  switch (options.when) {
    case TriggerOptions::When::All:
      return std::make_unique<InPerson>(host);
    case TriggerOptions::When::Need:
      return make_need(options, host);
    default:
      return make_activation(options, host);
  }
}

}  // namespace starling::comm
