// Workers of one process that meet, each on a thread of its own, and strangers that get in their
// way.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/connection.h"
#include "starling/comm/rendezvous.h"

namespace starling::comm {

// Places where nobody is: a unix socket, a port of the loopback interface.
std::string unix_place();
std::string tcp_place(const std::string& host = "127.0.0.1");

// Long enough for any machine; no test waits for it to pass.
inline constexpr Duration kPatience = std::chrono::seconds(60);

// The jobs of all workers.
std::vector<Job> jobs_at(const std::string& meet, std::size_t size,
                         const std::string& secret = "s");

// What became of a worker: the error it threw, or nothing.
using Outcome = std::optional<Error>;
Outcome outcome_of(const std::function<void()>& run);

// Meets with all jobs at once, then runs `use` on each thread. By position in `jobs`.
std::vector<Outcome> meet_all(const std::vector<Job>& jobs, Duration patience,
                              const std::function<void(Rendezvous&)>& use);

// One exchange in which everyone brings its rank, and what comes is checked.
void exchange_ranks(Rendezvous& rendezvous);

// A connection to whoever listens there, by any means.
Connection visit(const std::string& meet);
void say(Connection& connection, std::span<const std::byte> bytes);
// The next frame; fails the test if the other side ends first.
std::optional<Frame> listen_to(Connection& connection);

Bytestring bytes_of(std::string_view text);
std::string text_of(std::span<const std::byte> bytes);

}  // namespace starling::comm
