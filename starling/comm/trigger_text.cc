#include <chrono>
#include <cmath>
#include <string>

#include "starling/base/error.h"
#include "starling/base/time_words.h"
#include "starling/comm/trigger.h"

namespace starling::comm {

TriggerOptions parse_trigger(std::string_view what, std::string_view text, std::size_t workers) {
  using When = TriggerOptions::When;
  constexpr std::string_view kGrace = "first+";
  constexpr std::string_view kQuorum = "quorum:";
  TriggerOptions trigger;
  if (text == "all") {
    trigger.when = When::All;
  } else if (text == "first") {
    trigger.when = When::First;
  } else if (text == "need") {
    trigger.when = When::Need;
  } else if (text == "majority") {
    trigger.when = When::Initiator;
  } else if (text.starts_with(kQuorum)) {
    const auto count = parse_number<std::uint32_t>(text.substr(kQuorum.size()));
    require(count && *count > 0, "{} '{}': what follows : is a number of workers", what, text);
    require(*count <= workers, "{} '{}': the job has {} worker{}", what, text, workers,
            workers == 1 ? "" : "s");
    trigger.when = When::Quorum;
    trigger.quorum = *count;
  } else if (text == "first+learnt") {
    trigger.when = When::First;
    trigger.learn_grace = true;
    trigger.grace = std::chrono::seconds(1);
  } else if (text.starts_with(kGrace)) {
    trigger.when = When::First;
    trigger.grace = duration(parse_seconds(what, text, text.substr(kGrace.size())));
  } else {
    require(false,
            "{}: unknown '{}' (all, first, first+SECONDS, first+learnt, majority, quorum:K, need)",
            what, text);
  }
  return trigger;
}

}  // namespace starling::comm
