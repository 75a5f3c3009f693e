#include "tests/workers/audited_toy.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "starling/base/error.h"

namespace starling::test {
namespace {

constexpr std::size_t kPauses = 4;
constexpr auto kPause = std::chrono::microseconds(50);

}  // namespace

double payload(Rank rank, Step step) {
  const std::uint64_t bits =
      Random(17, rank.value).bits(static_cast<std::uint64_t>(step.value + 1));
  return static_cast<double>(1 + (bits >> 24));
}

double only_value(std::span<const double> values, std::string_view what) {
  const auto other = std::find_if(values.begin(), values.end(),
                                  [&](double value) { return value != values.front(); });
  check(other == values.end(), "{}: element {} is {}, element 0 is {}", what,
        other - values.begin(), other == values.end() ? 0 : *other, values.front());
  return values.front();
}

void write_slowly(std::span<double> values, double value, bool add) {
  const std::size_t piece = std::max<std::size_t>(1, values.size() / kPauses);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = add ? values[i] + value : value;
    if (i % piece == piece / 2) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

AuditedToy::AuditedToy(comm::Workers& workers, const Options& options)
    : workers_(workers),
      options_(options),
      random_(Random(options.seed, workers.rank().value)),
      model_(options.elements, payload(workers.rank(), comm::kInitial)),
      gradient_(options.elements, 0) {}

// Half a millisecond to one and a half; now and then ten.
Task<void> AuditedToy::compute(Step step) {
  const std::uint64_t time = random_.below(16) == 0 ? 10'000 : 500 + random_.below(1000);
  return apart([this, step, time] {
    std::this_thread::sleep_for(std::chrono::microseconds(time));
    write_slowly(gradient_, payload(workers_.rank(), step));
  });
}

void AuditedToy::update(Step step, comm::Buffer model) {
  const std::span<double> values(reinterpret_cast<double*>(model.blob.data), model.elements());
  if (sends_gradients()) {
    values_.push_back(only_value(gradient_, "a mean of gradients"));
    return write_slowly(values, gradient_.front(), true);
  }
  if (options_.algorithm->payload == topology::Payload::HeldModel) {
    return write_slowly(values, change(workers_.rank(), step, options_.sync_period), true);
  }
  write_slowly(values, payload(workers_.rank(), step));
}

void AuditedToy::step_ended() {
  if (!sends_gradients()) {
    values_.push_back(only_value(model_, "a model"));
  }
}

}  // namespace starling::test
