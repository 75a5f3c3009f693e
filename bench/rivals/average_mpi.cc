// MPI_Allreduce of ordinary memory. Started by mpirun, or alone as the only rank.
#include <mpi.h>

#include <limits>
#include <string>
#include <vector>

#include "bench/rivals/measure.h"
#include "bench/rivals/pattern.h"
#include "starling/base/error.h"

namespace starling::rivals {
namespace {

// MPI ends the job by itself on any error.
class Mpi : public Rival {
 public:
  Mpi() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  ~Mpi() override { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const override { return rank_; }
  std::vector<std::string> methods() const override { return {"chosen by MPI"}; }

  void prepare(std::size_t floats) override {
    input_.assign(floats, 0);
    result_.assign(floats, 0);
    fill_input(input_, rank_);
  }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void all_reduce(std::size_t) override {
    MPI_Allreduce(input_.data(), result_.data(), static_cast<int>(input_.size()), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
  }
  void spoil() override { spoil_result(result_); }
  bool correct() const override { return is_sum(result_, ranks_); }

  void combine(std::vector<double>& values, Combine how) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE,
                  how == Combine::Largest ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
  }

 private:
  int rank_ = 0;
  int ranks_ = 1;
  std::vector<float> input_;
  std::vector<float> result_;
};

int run(int argc, const char* const* argv) {
  const Plan plan = parse(argc, argv);
  for (const Size& size : plan.sizes) {
    require(size.bytes / sizeof(float) <= std::numeric_limits<int>::max(),
            "{} bytes are more than one MPI call takes", size.bytes);
  }
  Mpi mpi;
  return measure(plan, mpi);
}

}  // namespace
}  // namespace starling::rivals

int main(int argc, char** argv) {
  return starling::rivals::exit_code("average_mpi",
                                     [&] { return starling::rivals::run(argc, argv); });
}
