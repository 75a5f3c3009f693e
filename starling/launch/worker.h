// One worker: a process group, its output as lines, and how it ended.
//
// It runs until its first process ends. Then it is leaving: what it started may go on writing. Then
// it is gone: its group was killed and its output closed. Until it is gone its first process is not
// waited for, so that no other process can get its number, and a signal to the group reaches nobody
// else.
#pragma once

#include <functional>
#include <string_view>

#include "starling/base/time.h"
#include "starling/launch/launch.h"
#include "starling/launch/lines.h"
#include "starling/launch/process.h"

namespace starling::launch {

class Worker {
 public:
  using Sink = std::function<void(Stream stream, std::string_view line)>;

  // Has just been started.
  Worker(Process process, Sink sink);
  // Kills it if it is not gone; then its last lines are lost.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // To be waited for; each is closed when it has nothing more to tell.
  const Process& process() const { return process_; }

  // Sends the signal to the whole group.
  void tell(int signal) const;

  // Takes as much of the output as a pipe holds. Does nothing once the stream has ended.
  void read(Stream stream);

  // Requires: process().end is readable.
  void note_end();
  bool has_ended() const { return outcome_.exit_code || outcome_.signal; }
  // Until it has ended, it tells only the pid.
  const Outcome& outcome() const { return outcome_; }

  // No process has its output open.
  bool is_silent() const { return !process_.out.is_open() && !process_.err.is_open(); }

  // Kills what is left of the group and hands over what it had written. Requires: has_ended().
  void dismiss();
  bool is_gone() const { return is_gone_; }

 private:
  void finish(Stream stream);
  void kill_and_wait();
  Descriptor& descriptor(Stream s) { return s == Stream::Out ? process_.out : process_.err; }
  Lines& lines(Stream s) { return s == Stream::Out ? out_ : err_; }

  Process process_;
  Sink sink_;
  WallTime started_;
  Outcome outcome_;
  Lines out_;
  Lines err_;
  bool is_gone_ = false;
};

}  // namespace starling::launch
