#include "starling/train/model_average.h"

#include <array>
#include <cmath>
#include <exception>

namespace starling::train {
namespace {

void put(ModuleParameters& parameters, const ModelValues& values) {
  comm::KernelArithmetic().copy(parameters.flat(), values.flat, kernels::Store::Cached);
  for (std::size_t parameter = 0; parameter < parameters.facts().size(); ++parameter) {
    parameters.moved(parameter);
  }
  parameters.set_buffers(values.buffers);
}

template <typename T>
double squared_distance(const T* a, const T* b, std::size_t size) {
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return sum;
}

double squared_distance(comm::ConstBuffer a, comm::ConstBuffer b) {
  return a.type == comm::Type::Float64
             ? squared_distance(reinterpret_cast<const double*>(a.blob.data),
                                reinterpret_cast<const double*>(b.blob.data), a.elements())
             : squared_distance(reinterpret_cast<const float*>(a.blob.data),
                                reinterpret_cast<const float*>(b.blob.data), a.elements());
}

}  // namespace

void look_at(ModuleParameters& parameters, const ModelValues& others, const ModelValues& own,
             const std::function<void()>& look) {
  put(parameters, others);
  std::exception_ptr error;
  try {
    look();
  } catch (...) {
    error = std::current_exception();
  }
  put(parameters, own);
  if (error) {
    std::rethrow_exception(error);
  }
}

ModelAverage::ModelAverage(Assembly& assembly, comm::Workers& workers, ModuleParameters& parameters)
    : assembly_(assembly),
      parameters_(parameters),
      type_(parameters.type()),
      own_(workers.memory(parameters.flat().size)),
      mean_(workers.memory(parameters.flat().size)),
      own_buffers_(parameters.buffers()),
      mean_buffers_(own_buffers_.size()) {
  const comm::KernelArithmetic arithmetic;
  const comm::Buffer own = buffer(own_);
  const comm::Buffer mean = buffer(mean_);
  arithmetic.copy(own.blob, parameters.flat(), kernels::Store::Cached);
  members_ = assembly_.sum({own.type, own.blob}, mean);
  const std::array<comm::ConstBlob, 1> sum = {mean.blob};
  const std::array<double, 1> share = {1.0 / static_cast<double>(members_)};
  arithmetic.mix(mean.type, mean.blob, sum, share);
  if (!own_buffers_.empty()) {
    const std::size_t count =
        assembly_.sum(comm::input(std::span(own_buffers_)), comm::output(std::span(mean_buffers_)));
    for (double& value : mean_buffers_) {
      value /= static_cast<double>(count);
    }
  }
}

Consensus ModelAverage::distance() const {
  const comm::Buffer own = buffer(own_);
  const comm::Buffer mean = buffer(mean_);
  const double squares =
      assembly_.sum(squared_distance({own.type, own.blob}, {mean.type, mean.blob}));
  const std::vector<std::byte> zeros(mean.blob.size);
  const double norm = std::sqrt(
      squared_distance({mean.type, mean.blob}, {mean.type, {zeros.data(), zeros.size()}}));
  Consensus consensus;
  consensus.distance = std::sqrt(squares / static_cast<double>(members_));
  consensus.relative = norm == 0 ? 0 : consensus.distance / norm;
  return consensus;
}

void ModelAverage::look(const std::function<void()>& look) const {
  look_at(parameters_, mean_values(), own_values(), look);
}

void ModelAverage::take_over() const { put(parameters_, mean_values()); }

}  // namespace starling::train
