// Gloo's all-reduce over TCP, by ring or by hypercube, whichever is faster, and in place, as
// PyTorch calls it: given an input apart from the result Gloo would copy it first.
//
//   STARLING_RANK=R STARLING_SIZE=N average_gloo … --store DIR [--interface eth0]
//
// DIR: an empty folder that all ranks see, for one run: they meet there. Without --interface the
// ranks are on one host and talk over the loopback.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/rivals/measure.h"
#include "bench/rivals/pattern.h"
#include "starling/base/error.h"

namespace starling::rivals {
namespace {

using Algorithm = gloo::AllreduceOptions::Algorithm;

class Gloo : public Rival {
 public:
  Gloo(int rank, int ranks, const std::string& store, const std::string& interface)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, ranks)) {
    gloo::transport::tcp::attr attributes;
    attributes.iface = interface;
    gloo::rendezvous::FileStore files(store);
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context_->connectFullMesh(files, device);
  }

  int rank() const override { return context_->rank; }
  std::vector<std::string> methods() const override { return {"ring", "bcube"}; }

  void prepare(std::size_t floats) override {
    buffer_.assign(floats, 0);
    spoil();
  }
  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  void all_reduce(std::size_t method) override {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(method == 0 ? Algorithm::RING : Algorithm::BCUBE);
    options.setOutput(buffer_.data(), buffer_.size());
    reduce(options, &gloo::sum<float>);
  }
  // The sum of one repetition is the input of the next, and soon infinite; not so the last one's.
  void spoil() override { fill_input(buffer_, rank()); }
  bool correct() const override { return is_sum(buffer_, context_->size); }

  void combine(std::vector<double>& values, Combine how) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(values.data(), values.size());
    const Function largest = &gloo::max<double>;
    const Function total = &gloo::sum<double>;
    reduce(options, how == Combine::Largest ? largest : total);
  }

 private:
  using Function = void (*)(void*, const void*, const void*, std::size_t);
  static void reduce(gloo::AllreduceOptions& options, Function function) {
    options.setReduceFunction(function);
    gloo::allreduce(options);
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;  // shared: Gloo asks for it
  std::vector<float> buffer_;
};

int number_from_environment(const char* name, long lowest) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing else runs yet
  const char* value = std::getenv(name);
  require(value != nullptr, "{} is not set", name);
  return static_cast<int>(parse_number(name, value, lowest));
}

int run(int argc, const char* const* argv) {
  const Plan plan = parse(argc, argv, {"--store", "--interface"});
  require(plan.options.contains("--store"), "--store is needed");
  const int ranks = number_from_environment("STARLING_SIZE", 1);
  const int rank = number_from_environment("STARLING_RANK", 0);
  require(rank < ranks, "rank {} of {} ranks", rank, ranks);
  const auto interface = plan.options.find("--interface");
  Gloo gloo(rank, ranks, plan.options.at("--store"),
            interface == plan.options.end() ? "lo" : interface->second);
  return measure(plan, gloo);
}

}  // namespace
}  // namespace starling::rivals

int main(int argc, char** argv) {
  return starling::rivals::exit_code("average_gloo",
                                     [&] { return starling::rivals::run(argc, argv); });
}
