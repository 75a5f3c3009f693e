// What tests change in the world, as it was when they are over.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>

#include "starling/base/error.h"

namespace starling::workload {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = testing::TempDir() + "starling_workload_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("no temporary folder");
    }
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class TemporaryVariable {
 public:
  TemporaryVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = getenv(name)) {
      before_ = before;
    }
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~TemporaryVariable() {
    before_ ? setenv(name_.c_str(), before_->c_str(), 1) : unsetenv(name_.c_str());
  }
  TemporaryVariable(const TemporaryVariable&) = delete;
  TemporaryVariable& operator=(const TemporaryVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

inline void write_bytes(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// What an Error of that code says; all messages are one line.
template <typename Body>
std::string error_of(ErrorCode code, Body body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(name_of(e.code()), name_of(code)) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    return e.what();
  }
  return "no error";
}

template <typename Body>
std::string refusal(Body body) {
  return error_of(ErrorCode::Input, body);
}

}  // namespace starling::workload
