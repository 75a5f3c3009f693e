#include "tests/comm/meeting.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "starling/comm/address.h"

namespace starling::comm {
namespace {

constexpr std::size_t kLargestFrame = std::size_t{1} << 24;

WallTime soon() { return std::chrono::steady_clock::now() + kPatience; }

}  // namespace

std::string unix_place() {
  static std::atomic<int> places = 0;
  return fmt::format("unix:@starling-test-{}-{}", getpid(), places++);
}

std::string tcp_place(const std::string& host) {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(socket.descriptor(), generic, length), 0);
  EXPECT_EQ(getsockname(socket.descriptor(), generic, &length), 0);
  return fmt::format("tcp:{}:{}", host, ntohs(address.sin_port));
}

std::vector<Job> jobs_at(const std::string& meet, std::size_t size, const std::string& secret) {
  std::vector<Job> jobs;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    jobs.push_back({.launcher = Launcher::StarlingRun,
                    .rank = Rank{rank},
                    .size = size,
                    .meet = meet,
                    .secret = secret});
  }
  return jobs;
}

Outcome outcome_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

std::vector<Outcome> meet_all(const std::vector<Job>& jobs, Duration patience,
                              const std::function<void(Rendezvous&)>& use) {
  std::vector<Outcome> outcomes(jobs.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back(
        [&, i] { outcomes[i] = outcome_of([&] { use(*meet(jobs[i], patience)); }); });
  }
  threads.clear();
  return outcomes;
}

void exchange_ranks(Rendezvous& rendezvous) {
  const auto text = [](std::size_t rank) { return fmt::format("I am {}", rank); };
  const std::vector<Bytestring> table =
      rendezvous.exchange(bytes_of(text(rendezvous.rank().index())));
  ASSERT_EQ(table.size(), rendezvous.size());
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    EXPECT_EQ(text_of(table[rank]), text(rank));
  }
}

Connection visit(const std::string& meet) {
  while (true) {
    Attempt attempt = connect_to(*parse_address(meet), soon());
    if (attempt.socket.valid()) {
      return Connection(std::move(attempt.socket));
    }
    std::this_thread::yield();
  }
}

void say(Connection& connection, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::optional<std::size_t> sent = connection.write(bytes);
    ASSERT_TRUE(sent);
    bytes = bytes.subspan(*sent);
    if (*sent == 0) {
      ASSERT_TRUE(wait_for(connection.socket(), POLLOUT, soon()));
    }
  }
}

std::optional<Frame> listen_to(Connection& connection) {
  while (true) {
    std::optional<Frame> frame = connection.read_frame(kLargestFrame);
    if (frame) {
      return frame;
    }
    if (connection.ended() || !wait_for(connection.socket(), POLLIN, soon())) {
      ADD_FAILURE() << "nothing was said";
      return std::nullopt;
    }
  }
}

Bytestring bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string text_of(std::span<const std::byte> bytes) { return Unpacker(bytes).all_text(); }

}  // namespace starling::comm
