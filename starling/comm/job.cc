#include "starling/comm/job.h"

#include <array>
#include <cstdlib>

#include "starling/base/error.h"
#include "starling/comm/address.h"
#include "starling/comm/protocol.h"

namespace starling::comm {
namespace {

// The variables, with empty ones taken as not set.
class Environment {
 public:
  explicit Environment(const Variables& variables) : variables_(variables) {}

  std::optional<std::string> text(const char* name) const {
    std::optional<std::string> value = variables_(name);
    return value && !value->empty() ? value : std::nullopt;
  }

  bool has(const char* name) const { return text(name).has_value(); }

  std::optional<std::uint32_t> number(const char* name) const {
    const std::optional<std::string> value = text(name);
    if (!value) {
      return std::nullopt;
    }
    const std::optional<std::uint32_t> number = parse_number(*value);
    require(number.has_value(), "{}={} is not a number", name, *value);
    return number;
  }

  // As number(), of a variable that goes with another, which is set.
  std::uint32_t number_beside(const char* name, const char* other) const {
    require(has(name), "{} is not set, but {}={} is", name, other, text(other).value_or(""));
    return *number(name);
  }

 private:
  const Variables& variables_;
};

void check_rank(const char* rank_name, std::size_t rank, const char* size_name, std::size_t size) {
  require(size > 0, "{}=0: a job has at least one worker", size_name);
  require(size <= kMostWorkers, "{}={}: a job has at most {} workers", size_name, size,
          kMostWorkers);
  require(rank < size, "{}={} is not below {}={}", rank_name, rank, size_name, size);
}

// Rank and size from two variables, at least one of which is set.
Job numbered(const Environment& environment, Launcher launcher, const char* rank_name,
             const char* size_name) {
  const std::uint32_t rank = environment.number_beside(rank_name, size_name);
  const std::uint32_t size = environment.number_beside(size_name, rank_name);
  check_rank(rank_name, rank, size_name, size);
  return {.launcher = launcher, .rank = Rank{rank}, .size = size, .meet = {}, .secret = {}};
}

// STARLING_MEET, or nothing if it is not set.
std::string explicit_meet(const Environment& environment) {
  std::string meet = environment.text("STARLING_MEET").value_or("");
  require(meet.empty() || parse_address(meet),
          "STARLING_MEET={} is neither unix:@NAME nor tcp:HOST:PORT", meet);
  return meet;
}

Job starling_run(const Environment& environment) {
  Job job = numbered(environment, Launcher::StarlingRun, "STARLING_RANK", "STARLING_SIZE");
  job.meet = explicit_meet(environment);
  require(job.size == 1 || !job.meet.empty(), "STARLING_MEET is not set, but STARLING_SIZE={} is",
          job.size);
  return job;
}

void check_local_rank(const Environment& environment, std::size_t size) {
  const bool counted = environment.has("LOCAL_WORLD_SIZE");
  const char* local_size_name = counted ? "LOCAL_WORLD_SIZE" : "WORLD_SIZE";
  const std::size_t local_size = counted ? *environment.number("LOCAL_WORLD_SIZE") : size;
  require(local_size <= size, "LOCAL_WORLD_SIZE={} is above WORLD_SIZE={}", local_size, size);
  check_rank("LOCAL_RANK", environment.number("LOCAL_RANK").value_or(0), local_size_name,
             local_size);
}

// tcp:MASTER_ADDR:MASTER_PORT, or the port after it if torchrun itself is on that one.
std::string master(const Environment& environment) {
  const std::uint32_t named = environment.number_beside("MASTER_PORT", "MASTER_ADDR");
  const std::string host = environment.text("MASTER_ADDR").value_or("");
  require(!host.empty(), "MASTER_ADDR is not set, but MASTER_PORT={} is", named);
  const std::string agent = environment.text("TORCHELASTIC_USE_AGENT_STORE").value_or("");
  const std::uint64_t port = std::uint64_t{named} + (agent == "True" ? 1 : 0);
  require(named > 0 && port <= 65535, "MASTER_PORT={}{} is not a port", named,
          agent == "True" ? " + 1 (for torchrun has a store on it)" : "");
  const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[';
  std::string meet =
      bare_v6 ? fmt::format("tcp:[{}]:{}", host, port) : fmt::format("tcp:{}:{}", host, port);
  require(parse_address(meet).has_value(), "MASTER_ADDR={} is not a host", host);
  return meet;
}

Job torchrun(const Environment& environment) {
  Job job = numbered(environment, Launcher::Torchrun, "RANK", "WORLD_SIZE");
  check_local_rank(environment, job.size);
  job.meet = explicit_meet(environment);
  const bool master_given = environment.has("MASTER_ADDR") || environment.has("MASTER_PORT");
  require(job.size == 1 || !job.meet.empty() || master_given,
          "MASTER_ADDR and MASTER_PORT are not set, but WORLD_SIZE={} is", job.size);
  if (job.meet.empty() && job.size > 1) {
    job.meet = master(environment);
  }
  return job;
}

bool torchrun_is_complete(const Environment& environment) {
  const bool meet = environment.has("STARLING_MEET") ||
                    (environment.has("MASTER_ADDR") && environment.has("MASTER_PORT"));
  return meet && environment.has("RANK") && environment.has("WORLD_SIZE");
}

Job pmix(const Environment& environment) {
  environment.number_beside("PMIX_RANK", "PMIX_NAMESPACE");
  require(environment.has("PMIX_NAMESPACE"), "PMIX_NAMESPACE is not set, but PMIX_RANK={} is",
          environment.text("PMIX_RANK").value_or(""));
  return {.launcher = Launcher::Pmix, .meet = {}, .secret = {}};
}

// No launcher we know: make sure that it is not one we do not.
Job alone(const Environment& environment) {
  const std::string meet = explicit_meet(environment);
  require(meet.empty(),
          "STARLING_MEET={} is set, but neither STARLING_RANK and STARLING_SIZE are "
          "nor RANK and WORLD_SIZE",
          meet);
  for (const char* name : std::array{"SLURM_STEP_NUM_TASKS", "PMI_SIZE"}) {
    const std::uint32_t size = environment.number(name).value_or(1);
    require(size <= 1,
            "{}={}, but PMIX_RANK is not set: the launcher started several workers "
            "without PMIx. Use srun --mpi=pmix, Open MPI's mpirun or torchrun; or set RANK=0 and "
            "WORLD_SIZE=1 if each is to be a job of its own",
            name, size);
  }
  return {};
}

Job of_launcher(const Environment& environment) {
  const auto either = [&](const char* a, const char* b) {
    return environment.has(a) || environment.has(b);
  };
  if (either("STARLING_RANK", "STARLING_SIZE")) {
    return starling_run(environment);
  }
  const bool under_pmix = either("PMIX_RANK", "PMIX_NAMESPACE");
  if (under_pmix ? torchrun_is_complete(environment) : either("RANK", "WORLD_SIZE")) {
    return torchrun(environment);
  }
  return under_pmix ? pmix(environment) : alone(environment);
}

}  // namespace

std::string_view name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::None:
      return "no launcher";
    case Launcher::StarlingRun:
      return "starling run";
    case Launcher::Torchrun:
      return "torchrun";
    case Launcher::Pmix:
      return "PMIx";
  }
  return "unknown";
}

Variables process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Job find_job(const Variables& variables) {
  const Environment environment(variables);
  Job job = of_launcher(environment);
  job.secret = environment.text("STARLING_SECRET").value_or("");
  require(job.secret.size() <= kLongestSecret, "STARLING_SECRET has {} bytes; at most {} are fine",
          job.secret.size(), kLongestSecret);
  return job;
}

}  // namespace starling::comm
