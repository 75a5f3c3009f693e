#include "starling/topology/algorithm.h"

#include <array>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/suggestion.h"

namespace starling::topology {
namespace {

using Name = std::string_view;

constexpr std::array<Name, 1> kEveryone = {"complete"};
constexpr std::array<Name, 1> kRing = {"ring-neighbours"};
constexpr std::array<Name, 1> kPush = {"push"};
constexpr std::array<Name, 1> kPairs = {"pairs"};
constexpr std::array<Name, 2> kGroups = {"groups", "fixed-groups"};
constexpr std::array<Name, 4> kDecentralized = {"aer", "complete", "ring", "exponential"};
constexpr std::array<Name, 10> kAny = {"groups", "aer",         "complete",        "ring",
                                       "base-k", "exponential", "ring-neighbours", "pairs",
                                       "push",   "fixed-groups"};

constexpr std::array<Algorithm, 12> kTable = {{
    {"all-reduce", "all-reduce SGD", kEveryone, Cadence::EveryStep, Trigger::AllArrived,
     Payload::Gradients, Missing::Wait, GradientAt::CommonModel, false},
    {"local-sgd", "local SGD (H)", kEveryone, Cadence::EveryPeriod, Trigger::AllArrived,
     Payload::Parameters, Missing::Wait, GradientAt::OwnModel, false},
    {"d-psgd", "D-PSGD", kRing, Cadence::EveryStep, Trigger::AllArrived, Payload::Parameters,
     Missing::Wait, GradientAt::OwnMixedBeforeUpdate, false},
    {"sgp", "SGP (n peers)", kPush, Cadence::EveryStep, Trigger::AllArrived,
     Payload::ParametersAndPushWeight, Missing::Wait, GradientAt::OwnDebiased, false},
    {"overlapped-sgp", "overlapped SGP", kPush, Cadence::EveryStep, Trigger::AllArrived,
     Payload::ParametersAndPushWeight, Missing::Wait, GradientAt::OwnDebiased, true},
    {"ad-psgd", "AD-PSGD", kPairs, Cadence::EveryStep, Trigger::OneSideArrived, Payload::Parameters,
     Missing::LatestModel, GradientAt::OwnModel, false},
    {"eager-solo", "eager-SGD, solo", kEveryone, Cadence::EveryStep, Trigger::FirstArrived,
     Payload::Gradients, Missing::AccumulatedGradients, GradientAt::OwnModel, false},
    {"eager-majority", "eager-SGD, majority", kEveryone, Cadence::EveryStep,
     Trigger::DrawnInitiator, Payload::Gradients, Missing::AccumulatedGradients,
     GradientAt::OwnModel, false},
    {"wagma", "WAGMA (S, tau)", kGroups, Cadence::EveryStepAndSync, Trigger::FirstArrived,
     Payload::Parameters, Missing::LastPublishedModel, GradientAt::OwnModel, false},
    {"dadam", "decentralized Adam", kDecentralized, Cadence::EveryStep, Trigger::AllArrived,
     Payload::Parameters, Missing::Wait, GradientAt::OwnModel, true},
    {"accum-adam", "decentralized Adam, accumulated", kDecentralized, Cadence::EveryStep,
     Trigger::AllArrived, Payload::Parameters, Missing::Wait, GradientAt::OwnModel, true},
    {"starling", "Starling's own", kAny, Cadence::EveryStep, Trigger::WhenNeeded,
     Payload::HeldModel, Missing::NothingIsMissing, GradientAt::OwnOrMixed, true},
}};

// With and without dashes is the same; and two that people say.
std::string plain(std::string_view name) {
  std::string letters(name);
  std::erase(letters, '-');
  return letters == "local" ? "localsgd" : letters == "eager" ? "eagersolo" : letters;
}

}  // namespace

std::span<const Algorithm> algorithms() { return kTable; }

const Algorithm& find_algorithm(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : kTable) {
    if (plain(algorithm.name) == plain(name)) {
      return algorithm;
    }
    names.push_back(algorithm.name);
  }
  throw Error(ErrorCode::Input, fmt::format("unknown algorithm '{}': did you mean '{}'? Known: {}",
                                            name, nearest(name, names), fmt::join(names, ", ")));
}

bool has_orders(const Algorithm& algorithm) {
  return algorithm.payload == Payload::Parameters && !algorithm.one_step_behind &&
         algorithm.missing != Missing::LatestModel;
}

bool has_peers(const Algorithm& algorithm, std::string_view schedule) {
  return algorithm.payload == Payload::ParametersAndPushWeight || schedule == "push" ||
         schedule == "base-k";
}

bool is_eager(const Algorithm& algorithm) {
  return algorithm.missing == Missing::AccumulatedGradients;
}

std::optional<std::uint32_t> default_sync_period(const Algorithm& algorithm) {
  return algorithm.cadence == Cadence::EveryStep ? std::nullopt : std::optional(10U);
}

std::string_view name_of(Cadence cadence) {
  constexpr std::array<Name, 3> kNames = {"every step", "every H steps",
                                          "every step, everyone each tau"};
  return kNames[static_cast<std::size_t>(cadence)];
}

std::string_view name_of(Trigger trigger) {
  constexpr std::array<Name, 5> kNames = {"all arrived", "one side arrived", "first arrived",
                                          "a drawn initiator arrived", "when needed"};
  return kNames[static_cast<std::size_t>(trigger)];
}

std::string_view name_of(Payload payload) {
  constexpr std::array<Name, 4> kNames = {"gradients", "parameters", "parameters and push weight",
                                          "the engine-held model"};
  return kNames[static_cast<std::size_t>(payload)];
}

std::string_view name_of(Missing missing) {
  constexpr std::array<Name, 5> kNames = {"wait", "its latest model", "what it has accumulated",
                                          "its last published model", "nothing is missing"};
  return kNames[static_cast<std::size_t>(missing)];
}

std::string_view name_of(GradientAt place) {
  constexpr std::array<Name, 5> kNames = {"the common model", "its own model",
                                          "its own model, mixed before the update",
                                          "its own model, de-biased", "its own or the mixed model"};
  return kNames[static_cast<std::size_t>(place)];
}

}  // namespace starling::topology
