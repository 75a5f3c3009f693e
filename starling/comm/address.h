// Where the workers of a job meet, as text: unix:@NAME, a socket that is no file and goes with its
// owner, for workers of one machine; or tcp:HOST:PORT, with a name, an IPv4 address or an IPv6
// address in brackets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace starling::comm {

struct Address {
  bool local = false;      // unix
  std::string name;        // of the unix socket without '@', or of the host without brackets
  std::uint16_t port = 0;  // of tcp, never 0
};

// Nothing if the text is not of this form.
std::optional<Address> parse_address(std::string_view text);

// All of the text as a decimal number, or nothing.
std::optional<std::uint32_t> parse_number(std::string_view text);

}  // namespace starling::comm
