#include "starling/comm/address.h"

#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <limits>

namespace starling::comm {
namespace {

// A unix name has to leave room for the zero byte that makes it abstract.
constexpr std::size_t kLongestName = sizeof(sockaddr_un::sun_path) - 1;

std::optional<Address> parse_unix(std::string_view text) {
  if (!text.starts_with('@') || text.size() < 2 || text.size() - 1 > kLongestName) {
    return std::nullopt;
  }
  return Address{.local = true, .name = std::string(text.substr(1))};
}

std::optional<Address> parse_tcp(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  const bool plain = host.find_first_of("[]") == std::string_view::npos;
  const std::optional<std::uint32_t> port = parse_number(text.substr(colon + 1));
  if (host.empty() || !plain || (host.find(':') != std::string_view::npos) != bracketed || !port ||
      *port == 0 || *port > std::numeric_limits<std::uint16_t>::max()) {
    return std::nullopt;
  }
  return Address{.name = std::string(host), .port = static_cast<std::uint16_t>(*port)};
}

}  // namespace

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || rest != end) {
    return std::nullopt;
  }
  return value;
}

std::optional<Address> parse_address(std::string_view text) {
  if (text.starts_with("unix:")) {
    return parse_unix(text.substr(5));
  }
  if (text.starts_with("tcp:")) {
    return parse_tcp(text.substr(4));
  }
  return std::nullopt;
}

}  // namespace starling::comm
