#include "starling/comm/rendezvous.h"

#include <algorithm>
#include <chrono>

#include "starling/comm/module.h"
#include "starling/comm/pmix_rendezvous.h"
#include "starling/comm/protocol.h"
#include "starling/comm/secret.h"
#include "starling/comm/socket_rendezvous.h"

namespace starling::comm {
namespace {

// As good as for ever, and far from where clocks overflow.
constexpr Duration kMostPatience = std::chrono::hours(24 * 365);

// The only worker of its job.
class Alone final : public Rendezvous {
 public:
  explicit Alone(const Job& job)
      : how_(name_of(job.launcher)), secret_(job.secret.empty() ? draw_secret() : job.secret) {}

  Rank rank() const override { return Rank{0}; }
  std::size_t size() const override { return 1; }
  std::string how() const override { return how_; }
  std::string secret() const override { return secret_; }
  std::vector<Bytestring> exchange(std::span<const std::byte> own) override {
    check_brought(own);
    return {Bytestring(own.begin(), own.end())};
  }

 private:
  std::string how_;
  std::string secret_;
};

std::unique_ptr<Rendezvous> meet_by_pmix(const Job& job, Duration patience) {
  const auto create = reinterpret_cast<CreatePmixRendezvous*>(
      load_symbol("pmix", kCreatePmixRendezvous, "PMIx (libpmix2)"));
  return std::unique_ptr<Rendezvous>(create(job, patience));
}

}  // namespace

std::unique_ptr<Rendezvous> meet(const Job& job, Duration patience) {
  patience = std::min(patience, kMostPatience);
  if (job.launcher == Launcher::Pmix) {
    return meet_by_pmix(job, patience);
  }
  if (job.size == 1) {
    return std::make_unique<Alone>(job);
  }
  return job.rank == Rank{0} ? host_rendezvous(job, patience) : join_rendezvous(job, patience);
}

}  // namespace starling::comm
