// Memory for copies of the model, from the worker's pool, so that collectives work in it without
// copying. Weightless if the engine's payload is. Given back when this ends.
#pragma once

#include <utility>

#include "starling/comm/buffer.h"
#include "starling/comm/engine.h"

namespace starling::comm {

// What all workers must agree on about a model.
struct ModelShape {
  Type type = Type::Float32;
  std::size_t elements = 0;
  bool weightless = false;
  std::size_t bytes() const { return elements * size_of(type); }
};

class ModelMemory {
 public:
  ModelMemory(Engine& engine, const ModelShape& shape)
      : endpoint_(shape.weightless ? nullptr : &engine.endpoint()),
        buffer_{shape.type, shape.weightless ? Blob{nullptr, shape.bytes()}
                                             : engine.endpoint().share(shape.bytes())} {}
  ModelMemory(ModelMemory&& other) noexcept
      : endpoint_(std::exchange(other.endpoint_, nullptr)), buffer_(other.buffer_) {}
  ModelMemory& operator=(ModelMemory&&) = delete;
  ~ModelMemory() {
    if (endpoint_ != nullptr) {
      endpoint_->unshare(buffer_.blob);
    }
  }
  const Buffer& buffer() const { return buffer_; }

 private:
  Endpoint* endpoint_;
  Buffer buffer_;
};

}  // namespace starling::comm
