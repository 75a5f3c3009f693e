// Starling's own all-reduce, measured as its rivals are. Buffers come from the pool; with --private
// they are ordinary memory.
#include <vector>

#include "bench/rivals/measure.h"
#include "bench/rivals/pattern.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/comm/connect.h"

namespace starling::rivals {
namespace {

class Starling : public Rival {
 public:
  explicit Starling(bool is_private)
      : private_(is_private), workers_(comm::connect()), everyone_(workers_->everyone()) {}

  int rank() const override { return static_cast<int>(workers_->rank().value); }
  std::vector<std::string> methods() const override { return {"starling"}; }

  void prepare(std::size_t floats) override {
    if (private_) {
      own_input_.assign(floats, 0);
      own_result_.assign(floats, 0);
      input_ = own_input_;
      result_ = own_result_;
    } else {
      pool_input_ = workers_->memory(floats * sizeof(float));
      pool_result_ = workers_->memory(floats * sizeof(float));
      input_ = pool_input_.as<float>();
      result_ = pool_result_.as<float>();
    }
    fill_input(input_, rank());
    for (float& value : result_) {
      value = 0;
    }
  }
  void barrier() override {
    workers_->run([&](comm::Engine& engine) {
      return comm::barrier(engine, {.id = ++id_, .members = everyone_});
    });
  }
  void all_reduce(std::size_t) override { sum<float>(input_, result_); }
  void spoil() override { spoil_result(result_); }
  bool correct() const override { return is_sum(result_, static_cast<int>(workers_->size())); }

  void combine(std::vector<double>& values, Combine how) override {
    // Everyone's values in a row of its own, then all rows to everyone.
    const std::size_t count = values.size();
    std::vector<double> rows(workers_->size() * count);
    std::vector<double> all(rows.size());
    std::copy(values.begin(), values.end(), rows.begin() + workers_->rank().index() * count);
    sum<double>(rows, all);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = all[i];
      for (std::size_t r = 1; r < workers_->size(); ++r) {
        const double other = all[r * count + i];
        values[i] = how == Combine::Total ? values[i] + other : std::max(values[i], other);
      }
    }
  }

 private:
  template <typename T>
  void sum(std::span<T> in, std::span<T> out) {
    workers_->run([&](comm::Engine& engine) {
      return comm::all_reduce(engine, {.id = ++id_, .members = everyone_}, comm::input(in),
                              comm::output(out));
    });
  }

  bool private_;
  std::unique_ptr<comm::Workers> workers_;
  std::vector<Rank> everyone_;
  std::uint64_t id_ = 0;
  std::vector<float> own_input_;
  std::vector<float> own_result_;
  comm::PoolMemory pool_input_;
  comm::PoolMemory pool_result_;
  std::span<float> input_;
  std::span<float> result_;
};

int run(int argc, const char* const* argv) {
  const Plan plan = parse(argc, argv);
  Starling starling(plan.is_private);
  return measure(plan, starling);
}

}  // namespace
}  // namespace starling::rivals

int main(int argc, char** argv) {
  return starling::rivals::exit_code("average_starling",
                                     [&] { return starling::rivals::run(argc, argv); });
}
