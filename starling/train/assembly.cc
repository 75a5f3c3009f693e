#include "starling/train/assembly.h"

#include <algorithm>
#include <cstring>

#include "starling/base/error.h"
#include "starling/base/running.h"
#include "starling/comm/rounds.h"
#include "starling/topology/schedule.h"

namespace starling::train {
namespace {

// Bytes as numbers that can be added to zeros without a change: two in each.
std::vector<float> numbers_of(std::span<const std::byte> bytes) {
  std::vector<float> numbers((bytes.size() + 1) / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto value = static_cast<unsigned>(bytes[i]);
    numbers[i / 2] += static_cast<float>(i % 2 == 0 ? value : 256 * value);
  }
  return numbers;
}

void write_bytes(std::span<const float> numbers, std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto both = static_cast<unsigned>(numbers[i / 2]);
    bytes[i] = static_cast<std::byte>(i % 2 == 0 ? both % 256 : both / 256);
  }
}

comm::RoundsOptions options_of(std::uint64_t series) {
  comm::RoundsOptions options;
  options.sync_period = 1;
  options.series = series;
  return options;
}

}  // namespace

// Where the calls of this worker meet those of the others. The engine's thread alone.
class Assembly::Table final : private comm::Contribution {
 public:
  Table(comm::Engine& engine, std::uint64_t series)
      : schedule_(topology::make_schedule("complete",
                                          {.workers = static_cast<std::uint32_t>(engine.size())})),
        rounds_(engine, *schedule_, *this, options_of(series)),
        loop_(rounds_.run()) {}

  // How many took part.
  Task<std::size_t> sum(comm::ConstBuffer from, comm::Buffer into, Who contributes) {
    from_ = from;
    into_ = into;
    contributes_ = contributes;
    zeros_.assign(contributes == Who::TheLowest ? from.blob.size : 0, std::byte{0});
    std::exception_ptr error;
    try {
      do {
        void_ = false;
        rounds_.arrived(calls_++);
        co_await rounds_.ended(calls_ - 1);
      } while (void_);
    } catch (...) {
      error = std::current_exception();
    }
    if (error) {
      co_await leave();  // nothing touches the buffers any more
      std::rethrow_exception(error);
    }
    co_return members_;
  }

  Task<void> leave() {
    rounds_.leave();
    try {
      co_await loop_;
    } catch (...) {
      // Whoever was in a call has been told.
    }
  }

 private:
  // Contribution
  bool has(comm::Version v) const override { return v < calls_; }
  bool is_free() const override { return true; }
  Pass begin() override {
    const bool silent = contributes_ == Who::TheLowest &&
                        rounds_.view().everybody().front() != rounds_.engine().rank();
    return {.in = silent ? comm::ConstBuffer{from_.type, {zeros_.data(), zeros_.size()}} : from_,
            .out = into_,
            .step = Step{static_cast<std::int64_t>(calls_) - 1}};
  }
  Task<void> end(comm::Outcome& outcome) override {
    members_ = outcome.members.size();
    co_return;
  }
  void drop() override {}
  void skipped(comm::Version v) override { void_ = v + 1 == calls_; }

  comm::ConstBuffer from_;
  comm::Buffer into_;
  Who contributes_ = Who::Everyone;
  std::vector<std::byte> zeros_;
  comm::Version calls_ = 0;  // as many versions were asked for
  std::size_t members_ = 0;
  bool void_ = false;
  std::unique_ptr<topology::Schedule> schedule_;
  comm::Rounds rounds_;
  Running<void> loop_;
};

Assembly::Assembly(comm::Workers& workers, std::uint64_t series) : workers_(workers) {
  workers_.run([this, series](comm::Engine& engine) -> Task<void> {
    table_ = std::make_unique<Table>(engine, series);
    co_return;
  });
}

Assembly::~Assembly() {
  try {
    workers_.run([this](comm::Engine&) -> Task<void> {
      co_await table_->leave();
      table_.reset();
    });
  } catch (...) {
    // The engine was closed, and nothing runs there any more.
  }
}

std::size_t Assembly::sum(comm::ConstBuffer from, comm::Buffer into, Who contributes) {
  return workers_.run([=, this](comm::Engine&) { return table_->sum(from, into, contributes); });
}

std::size_t Assembly::sum(comm::ConstBuffer from, comm::Buffer into) {
  return sum(from, into, Who::Everyone);
}

double Assembly::sum(double value) {
  double all = 0;
  sum(comm::input(std::span(&value, 1)), comm::output(std::span(&all, 1)));
  return all;
}

void Assembly::broadcast(std::span<std::byte> bytes) {
  if (bytes.empty() || workers_.size() == 1) {
    return;
  }
  const std::vector<float> own = numbers_of(bytes);
  std::vector<float> all(own.size());
  sum(comm::input(std::span(own)), comm::output(std::span(all)), Who::TheLowest);
  write_bytes(all, bytes);
}

std::string Assembly::broadcast(std::string_view text) {
  std::uint64_t size = text.size();
  broadcast(std::as_writable_bytes(std::span(&size, 1)));
  std::string all(text);
  all.resize(size);
  broadcast(std::as_writable_bytes(std::span(all)));
  return all;
}

std::vector<std::string> Assembly::gather(std::string_view text) {
  std::vector<std::byte> records(workers_.size() * kLongest);
  std::memcpy(records.data() + workers_.rank().index() * kLongest, text.data(),
              std::min(text.size(), kLongest));
  const std::vector<float> own = numbers_of(records);
  std::vector<float> all(own.size());
  sum(comm::input(std::span(own)), comm::output(std::span(all)), Who::Everyone);
  write_bytes(all, records);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    const char* record = reinterpret_cast<const char*>(records.data()) + rank * kLongest;
    texts.emplace_back(record, strnlen(record, kLongest));
  }
  return texts;
}

}  // namespace starling::train
