#include "starling/comm/secret.h"

#include <sys/random.h>

#include <array>
#include <cstdint>

#include "starling/base/error.h"

namespace starling::comm {

std::string draw_secret() {
  std::array<std::uint8_t, 16> bytes{};
  // So few bytes come whole, or not at all.
  check(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
        "the kernel gave no random bytes");
  std::string secret;
  for (const std::uint8_t byte : bytes) {
    secret += fmt::format("{:02x}", byte);
  }
  return secret;
}

}  // namespace starling::comm
