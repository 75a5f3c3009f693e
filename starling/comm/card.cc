#include "starling/comm/card.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>

#include "starling/base/error.h"
#include "starling/comm/packing.h"

namespace starling::comm {
namespace {

void put(Packer& packer, std::string_view text) {
  packer.number(static_cast<std::uint32_t>(text.size()));
  packer.text(text);
}

void put(Packer& packer, std::uint64_t number) {
  packer.number(static_cast<std::uint32_t>(number));
  packer.number(static_cast<std::uint32_t>(number >> 32));
}

std::string text(Unpacker& unpacker) {
  const std::uint32_t length = unpacker.number();
  return unpacker.text(length);
}

std::uint64_t large(Unpacker& unpacker) {
  const std::uint64_t low = unpacker.number();
  return low | (std::uint64_t{unpacker.number()} << 32);
}

}  // namespace

Bytestring Card::packed() const {
  Packer packer;
  put(packer, configuration);
  put(packer, host);
  put(packer, host_name);
  packer.number(static_cast<std::uint32_t>(pool.pid));
  packer.number(static_cast<std::uint32_t>(pool.file));
  packer.number(static_cast<std::uint32_t>(pool.bell));
  put(packer, pool.bytes);
  put(packer, pool.key);
  packer.number(lifeline.port);
  packer.number(static_cast<std::uint32_t>(lifeline.hosts.size()));
  for (const std::string& address : lifeline.hosts) {
    put(packer, address);
  }
  packer.number(static_cast<std::uint32_t>(wire.size()));
  packer.bytes(wire);
  return packer.packed();
}

Card Card::unpack(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  Card card;
  card.configuration = text(unpacker);
  card.host = text(unpacker);
  card.host_name = text(unpacker);
  card.pool.pid = static_cast<std::int32_t>(unpacker.number());
  card.pool.file = static_cast<std::int32_t>(unpacker.number());
  card.pool.bell = static_cast<std::int32_t>(unpacker.number());
  card.pool.bytes = large(unpacker);
  card.pool.key = large(unpacker);
  card.lifeline.port = static_cast<std::uint16_t>(unpacker.number());
  const std::uint32_t addresses = unpacker.number();
  for (std::uint32_t i = 0; i < addresses; ++i) {
    card.lifeline.hosts.push_back(text(unpacker));
  }
  const std::uint32_t length = unpacker.number();
  const auto wire = unpacker.bytes(length);
  card.wire.assign(wire.begin(), wire.end());
  return card;
}

std::string own_host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string own_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network{};
  const auto inode = stat("/proc/self/ns/net", &network) == 0 ? network.st_ino : 0;
  return fmt::format("{} {} {}", boot, inode, own_host_name());
}

}  // namespace starling::comm
