// Where workers come in: worker 0 listens, hears out everyone who comes, lets workers of its job in
// and tells the others why not. Nobody at the door can hold it up: each has its own connection, a
// few seconds to introduce itself, and only so many are heard at a time.
#pragma once

#include <poll.h>

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "starling/base/time.h"
#include "starling/comm/connection.h"
#include "starling/comm/job.h"

namespace starling::comm {

class Door {
 public:
  // Listens at job.meet, for workers who know job.secret. Throws as listen_at().
  explicit Door(const Job& job);

  struct Arrival {
    Rank rank;
    Connection connection;
  };

  // What to sleep on, and for how long at most.
  void watch(std::vector<pollfd>& polls) const;
  WallTime until() const;

  // Hears everyone. Those who came in are in the job, but may come twice.
  std::vector<Arrival> hear();

  // Says why, and lets the other side hear it before the connection is closed.
  void refuse(Connection connection, const std::string& reason);

 private:
  struct Visitor {
    Connection connection;
    WallTime until;        // then it has to be gone
    bool opened = false;   // its opening was read, and is fine
    bool leaving = false;  // it was refused
  };

  void admit();
  // What came of a visitor after it was heard.
  enum class Verdict : std::uint8_t { Stays, Goes, Enters };
  Verdict hear(Visitor& visitor, Rank& rank) const;
  Verdict turn_away(Visitor& visitor, const std::string& reason) const;

  const Job& job_;
  Socket listener_;
  std::list<Visitor> visitors_;
};

}  // namespace starling::comm
