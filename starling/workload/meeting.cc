#include "starling/workload/meeting.h"

#include <fmt/format.h>

#include <algorithm>

#include "starling/base/error.h"

namespace starling::workload {
namespace {

// What the first number of an answer says. What is broadcast is that of the lowest living rank: if
// the leader was lost before it answered, that of one who does not know.
constexpr double kDoesNotKnow = 0;
constexpr double kDone = 1;
constexpr double kFailed = 2;
constexpr double kRefused = 3;  // failed, for the input is wrong

}  // namespace

bool Meetings::leads() {
  const std::vector<bool> living = alive();
  const auto lowest = std::find(living.begin(), living.end(), true) - living.begin();
  return static_cast<std::size_t>(lowest) == workers_.rank().index();
}

std::vector<bool> Meetings::alive() {
  return workers_.run([](comm::Engine& engine) -> Task<std::vector<bool>> {
    std::vector<bool> alive(engine.size());
    for (std::uint32_t rank = 0; rank < engine.size(); ++rank) {
      alive[rank] = !engine.lost(Rank{rank});
    }
    co_return alive;
  });
}

// One row per worker, all others 0, summed; the first column says whose row is there.
Meetings::Records Meetings::gather(std::span<const double> own) {
  const std::size_t columns = own.size() + 1;
  std::vector<double> rows(columns * workers_.size());
  std::vector<double> all(rows.size());
  const auto row = [&](std::vector<double>& table, std::size_t rank) {
    return std::span(table).subspan(rank * columns, columns);
  };
  const std::span<double> mine = row(rows, workers_.rank().index());
  mine[0] = 1;
  std::copy(own.begin(), own.end(), mine.begin() + 1);
  assembly_.sum(comm::input(std::span(rows)), comm::output(std::span(all)));
  Records records(workers_.size());
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    const std::span<double> theirs = row(all, rank);
    if (theirs[0] != 0) {
      records[rank].emplace(theirs.begin() + 1, theirs.end());
    }
  }
  return records;
}

std::vector<double> Meetings::everyones(double own) {
  std::vector<double> all;
  for (const auto& record : gather(std::span(&own, 1))) {
    if (!record) {
      throw Error(ErrorCode::Lost, fmt::format("worker {} was lost", all.size()));
    }
    all.push_back(record->front());
  }
  return all;
}

Meetings::Answer Meetings::meet(std::span<const double> own, std::size_t length,
                                const std::function<Answer(const Records&)>& lead) {
  for (;;) {
    const Records records = gather(own);
    const auto leader = std::find_if(records.begin(), records.end(),
                                     [](const auto& record) { return record.has_value(); });
    std::vector<double> message(length + 1, kDoesNotKnow);
    std::exception_ptr failure;
    if (static_cast<std::size_t>(leader - records.begin()) == workers_.rank().index()) {
      try {
        const Answer answer = lead(records);
        check(answer.size() == length, "an answer of {} numbers, not {}", answer.size(), length);
        std::copy(answer.begin(), answer.end(), message.begin() + 1);
        message[0] = kDone;
      } catch (const Error& e) {
        failure = std::current_exception();
        message[0] = e.code() == ErrorCode::Input ? kRefused : kFailed;
      } catch (...) {
        failure = std::current_exception();
        message[0] = kFailed;
      }
    }
    assembly_.broadcast(std::as_writable_bytes(std::span(message)));
    if (failure) {
      std::rethrow_exception(failure);
    }
    if (message[0] == kFailed || message[0] == kRefused) {
      throw AlreadyTold(message[0] == kRefused);
    }
    if (message[0] == kDone) {
      return {message.begin() + 1, message.end()};
    }
  }
}

std::string Meetings::told_by_leader(const std::function<std::string()>& make) {
  std::string text;
  meet(std::vector<double>{0}, 0, [&](const Records&) {
    text = make();
    return Answer();
  });
  text = assembly_.broadcast(text);
  if (text.empty()) {
    throw Error(ErrorCode::Lost, "the first worker was lost before it had begun");
  }
  return text;
}

}  // namespace starling::workload
