#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "starling/base/error.h"
#include "starling/base/line_file.h"
#include "starling/comm/ledger.h"

namespace starling::comm {
namespace {

using Json = nlohmann::json;

Time time_of(const Json& row, const char* name) {
  return Time(Duration(row.at(name).get<std::int64_t>()));
}

Outcome outcome_of(const Json& row) {
  Outcome o;
  o.version = row.at("version").get<Version>();
  o.epoch = row.at("epoch").get<Epoch>();
  o.is_void = row.at("void").get<bool>();
  o.is_sync = row.at("sync").get<bool>();
  o.form = row.at("form") == "sum" ? Form::Sum : Form::Mix;
  for (const Json& member : row.at("members")) {
    o.members.push_back(Rank{member.get<std::uint32_t>()});
  }
  for (const Json& step : row.at("steps")) {
    o.steps.push_back(Step{step.get<std::int64_t>()});
  }
  o.own = Step{row.at("own").get<std::int64_t>()};
  o.own_at_end = Step{row.at("own_at_end").get<std::int64_t>()};
  o.activator = Rank{row.at("activator").get<std::uint32_t>()};
  o.push_weight = row.at("push_weight").get<double>();
  o.self_weight = row.at("self_weight").get<double>();
  o.activated = time_of(row, "activated");
  o.started = time_of(row, "started");
  o.finished = time_of(row, "finished");
  o.bytes = row.at("bytes").get<std::uint64_t>();
  return o;
}

PickUp pick_up_of(const Json& row) {
  PickUp p;
  p.step = Step{row.at("step").get<std::int64_t>()};
  if (!row.at("version").is_null()) {
    p.version = row.at("version").get<Version>();
  }
  p.divisor = row.at("divisor").get<double>();
  p.late = row.at("late").get<bool>();
  p.waited = Duration(row.at("waited").get<std::int64_t>());
  return p;
}

}  // namespace

Ledger::Sink ledger_file(const std::string& path, std::function<void(const std::string&)> lost) {
  const auto attempt = [lost = std::move(lost)](const auto& act) {
    try {
      act();
      return true;
    } catch (const Error& e) {
      if (!lost) {
        throw;
      }
      lost(e.what());
      return false;
    }
  };
  // A std::function is copied: hence a shared_ptr. None: it is lost.
  std::shared_ptr<LineFile> file;
  attempt([&] { file = std::make_shared<LineFile>(path, LineFile::Begin::Anew); });
  return [file, attempt](std::string_view lines) mutable {
    if (file && !attempt([&] { file->write(lines); })) {
      file.reset();
    }
  };
}

std::vector<LedgerRow> read_ledger(std::istream& lines) {
  std::vector<LedgerRow> rows;
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    try {
      const Json row = Json::parse(line);
      LedgerRow read{.worker = Rank{row.at("worker").get<std::uint32_t>()}, .what = {}};
      if (row.at("kind") == "round") {
        read.what = outcome_of(row);
      } else {
        read.what = pick_up_of(row);
      }
      rows.push_back(std::move(read));
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::Input, fmt::format("line {} of the ledger: {}", number, e.what()));
    }
  }
  return rows;
}

}  // namespace starling::comm
