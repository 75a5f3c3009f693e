// One line on a terminal that is written over; nothing where nobody looks.
#pragma once

#include <string>

namespace starling::tool {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const std::string& text);

 private:
  bool terminal_;
};

}  // namespace starling::tool
