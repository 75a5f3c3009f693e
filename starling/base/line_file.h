// A file of lines that grows at its end. If a write fails (a full disk), the file ends after the
// last line that is whole, as far as the file system lets it be cut. Errors are
// Error{Environment}, in one line that names the file; after one, only destruction. Threads: one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace starling {

class LineFile {
 public:
  enum class Begin : std::uint8_t { Anew, AtTheEnd };
  LineFile(std::filesystem::path path, Begin begin);
  // Closes; errors are lost.
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Whole lines. They are the system's when this returns: also if the process is killed.
  void write(std::string_view lines);
  void close();

 private:
  [[noreturn]] void fail(int reason) const;

  std::filesystem::path path_;
  int descriptor_;
  std::int64_t size_ = 0;
};

}  // namespace starling
