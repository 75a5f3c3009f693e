#include "starling/train/assembly.h"

#include <algorithm>
#include <cstring>

#include "starling/base/error.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/broadcast.h"
#include "starling/comm/gather.h"

namespace starling::train {
namespace {

// Apart from the ids that applications are likely to use for operations of their own.
constexpr std::uint64_t kFirstId = std::uint64_t{1} << 40;
constexpr std::size_t kWord = sizeof(float);

template <typename T>
Task<void> finish(Task<T> task) {
  co_await task;
}

}  // namespace

std::vector<Rank> Assembly::living() {
  return workers_.run([](comm::Engine& engine) -> Task<std::vector<Rank>> {
    std::vector<Rank> alive;
    for (std::uint32_t r = 0; r < engine.size(); ++r) {
      if (!engine.lost(Rank{r})) {
        alive.push_back(Rank{r});
      }
    }
    co_return alive;
  });
}

std::vector<Rank> Assembly::together(const Collective& collective) {
  // Apart also in the low bits, which name messages under way.
  const std::uint64_t number = series_ * 1009 + calls_++;
  const std::uint64_t first = kFirstId * (series_ + 1) + number * (workers_.size() + 1);
  while (true) {
    const std::vector<Rank> members = living();
    // Whoever counts one more dead is in another operation; the others will hear of it.
    const std::uint64_t id = first + workers_.size() - members.size();
    try {
      workers_.run(
          [&](comm::Engine& engine) { return collective(engine, {.id = id, .members = members}); });
      return members;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::Lost || living().size() == members.size()) {
        throw;
      }
    }
  }
}

void Assembly::broadcast(std::span<std::byte> bytes) {
  const std::size_t padded = (bytes.size() + kWord - 1) / kWord * kWord;
  if (padded == 0 || workers_.size() == 1) {
    return;
  }
  std::vector<std::byte> in(padded);
  std::vector<std::byte> out(padded);
  std::memcpy(in.data(), bytes.data(), bytes.size());
  together([&](comm::Engine& engine, comm::Call call) {
    const Rank root = call.members.front();
    return finish(comm::broadcast(engine, call, root, {comm::Type::Float32, {in.data(), padded}},
                                  {comm::Type::Float32, {out.data(), padded}}));
  });
  std::memcpy(bytes.data(), out.data(), bytes.size());
}

std::string Assembly::broadcast(std::string_view text) {
  std::uint64_t size = text.size();
  broadcast(std::as_writable_bytes(std::span(&size, 1)));
  std::string all(text);
  all.resize(size);
  broadcast(std::as_writable_bytes(std::span(all)));
  return all;
}

std::size_t Assembly::sum(comm::ConstBuffer from, comm::Buffer into) {
  const std::vector<Rank> members = together([&](comm::Engine& engine, comm::Call call) {
    return finish(comm::all_reduce(engine, call, from, into));
  });
  return members.size();
}

double Assembly::sum(double value) {
  double all = 0;
  sum(comm::input(std::span(&value, 1)), comm::output(std::span(&all, 1)));
  return all;
}

std::vector<std::string> Assembly::gather(std::string_view text) {
  std::vector<std::byte> records;
  const std::vector<Rank> members = together([&](comm::Engine& engine, comm::Call call) {
    records.assign(call.members.size() * kLongest, std::byte{0});
    const auto self = std::lower_bound(call.members.begin(), call.members.end(), workers_.rank()) -
                      call.members.begin();
    std::memcpy(records.data() + static_cast<std::size_t>(self) * kLongest, text.data(),
                std::min(text.size(), kLongest));
    return finish(comm::gather(engine, call, records));
  });
  std::vector<std::string> texts(workers_.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const char* record = reinterpret_cast<const char*>(records.data()) + i * kLongest;
    texts[members[i].index()] = std::string(record, strnlen(record, kLongest));
  }
  return texts;
}

}  // namespace starling::train
