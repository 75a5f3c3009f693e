#include "starling/workload/digest.h"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <vector>

#include "starling/base/error.h"

namespace starling::workload {
namespace {

class Digest {
 public:
  explicit Digest(const EVP_MD* kind) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    check(context_ != nullptr && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1,
          "libcrypto has no such digest");
  }

  void add(std::span<const std::uint8_t> bytes) {
    check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1,
          "libcrypto refuses to digest");
  }

  std::string end() {
    std::array<std::uint8_t, EVP_MAX_MD_SIZE> value{};
    unsigned size = 0;
    check(EVP_DigestFinal_ex(context_.get(), value.data(), &size) == 1,
          "libcrypto refuses to digest");
    std::string text;
    for (const std::uint8_t byte : std::span(value).first(size)) {
      text += fmt::format("{:02x}", byte);
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string md5(std::span<const std::uint8_t> bytes) {
  Digest digest(EVP_md5());
  digest.add(bytes);
  return digest.end();
}

std::string sha256(std::span<const std::span<const std::byte>> pieces) {
  Digest digest(EVP_sha256());
  for (const std::span<const std::byte> piece : pieces) {
    digest.add({reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size()});
  }
  return digest.end();
}

std::string sha256_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  Digest digest(EVP_sha256());
  std::vector<std::uint8_t> piece(1 << 16);
  do {
    in.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
    digest.add(std::span(piece).first(static_cast<std::size_t>(in.gcount())));
  } while (in.good());
  if (!in.eof()) {
    throw Error(ErrorCode::Environment, fmt::format("cannot read {}", file.string()));
  }
  return digest.end();
}

}  // namespace starling::workload
