// Nobody else uses a folder as long as this lives: a lock on FOLDER/.lock, which ends with the
// process, however that ends. Where the file system has no locks, nobody is kept out. Threads: one.
#pragma once

#include <cstdint>
#include <filesystem>

namespace starling {

class FolderLock {
 public:
  static constexpr const char* kFile = ".lock";
  enum class Hold : std::uint8_t { Alone, Together };

  // Makes the folder if it is not there. Throws Error{Input} if others hold the lock; together with
  // those who share() it they may.
  explicit FolderLock(const std::filesystem::path& folder, Hold hold = Hold::Alone);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // From now on others may hold it together with this. Throws Error{Input} if somebody was quicker,
  // and holds it alone.
  void share();

 private:
  void hold(int how);

  std::filesystem::path folder_;
  int descriptor_ = -1;
};

}  // namespace starling
