#include "starling/comm/introduction.h"

#include <algorithm>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

constexpr std::string_view kMagic = "starling";

}  // namespace

Bytestring introduce(const Job& job) {
  Packer packer;
  packer.text(kMagic);
  packer.number(kProtocolVersion);
  packer.number(job.rank.value);
  packer.number(static_cast<std::uint32_t>(job.size));
  packer.number(static_cast<std::uint32_t>(job.secret.size()));
  packer.padded(job.secret, kLongestSecret);
  return packer.packed();
}

std::optional<std::string> fault_of_opening(std::span<const std::byte> opening) {
  Unpacker unpacker(opening);
  if (unpacker.text(kMagic.size()) != kMagic) {
    return "only workers of Starling are expected here";
  }
  const std::uint32_t version = unpacker.number();
  if (version != kProtocolVersion) {
    return fmt::format("worker 0 has version {} of the protocol, the other has version {}",
                       kProtocolVersion, version);
  }
  return std::nullopt;
}

Introduction unpack_rest(std::span<const std::byte> rest) {
  Unpacker unpacker(rest);
  Introduction introduction;
  introduction.rank = unpacker.number();
  introduction.size = unpacker.number();
  const std::size_t length = unpacker.number();
  introduction.secret = unpacker.text(std::min(length, kLongestSecret));
  return introduction;
}

std::optional<std::string> fault_of(const Introduction& introduction, const Job& job) {
  if (introduction.secret != job.secret) {
    return "another job is there (wrong secret)";
  }
  if (introduction.size != job.size) {
    return fmt::format("another job is there (it has {} workers, not {})", job.size,
                       introduction.size);
  }
  if (introduction.rank == 0 || introduction.rank >= job.size) {
    return fmt::format("worker {} is not expected", introduction.rank);
  }
  return std::nullopt;
}

}  // namespace starling::comm
