#include "tests/train/case.h"

#include <array>
#include <map>
#include <numeric>
#include <sstream>

#include "starling/base/error.h"
#include "starling/base/random.h"

namespace starling::test {

std::string to_text(const Case& c) {
  return fmt::format(
      "optimizer={} algorithm={} schedule={} bucket={} wide={} steps={} clip={} bf16={} quirk={} "
      "ledger={} peers={} averaging={} period={}",
      c.optimizer, c.algorithm, c.schedule, c.bucket, c.wide ? 1 : 0, c.steps, c.clip,
      c.bf16 ? 1 : 0, c.quirk, c.ledger, c.peers, c.averaging, c.period);
}

Case parse_case(std::string_view text) {
  std::map<std::string, std::string> values;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const std::size_t at = word.find('=');
    require(at != std::string::npos, "'{}' is not NAME=VALUE", word);
    values[word.substr(0, at)] = word.substr(at + 1);
  }
  Case c;
  c.optimizer = values.at("optimizer");
  c.algorithm = values.at("algorithm");
  c.schedule = values.at("schedule");
  c.bucket = std::stoull(values.at("bucket"));
  c.wide = values.at("wide") == "1";
  c.steps = std::stoull(values.at("steps"));
  c.clip = values.at("clip");
  c.bf16 = values.at("bf16") == "1";
  c.quirk = values.at("quirk");
  c.ledger = values.at("ledger");
  c.peers = static_cast<std::uint32_t>(std::stoul(values.at("peers")));
  c.averaging = values.at("averaging");
  c.period = static_cast<std::uint32_t>(std::stoul(values.at("period")));
  return c;
}

train::Fused optimizer_of(const Case& c) {
  if (c.optimizer == "sgd") {
    return train::SGD{.lr = 0.1, .weight_decay = 0.01};
  }
  if (c.optimizer == "momentum") {
    return train::SGD{.lr = 0.05, .momentum = 0.9, .dampening = 0.1};
  }
  if (c.optimizer == "nesterov") {
    return train::SGD{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
  }
  if (c.optimizer == "adam") {
    return train::Adam{.lr = 0.02, .weight_decay = 0.01};
  }
  if (c.optimizer == "adamw") {
    return train::AdamW{.lr = 0.02};
  }
  if (c.optimizer == "accum-adam") {
    return train::AccumAdam{.lr = 0.02, .window = 3};
  }
  require(c.optimizer == "accum-adamw", "unknown optimizer '{}'", c.optimizer);
  return train::AccumAdamW{.lr = 0.02, .window = 4};
}

std::size_t Shape::elements() const {
  return static_cast<std::size_t>(
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>()));
}

std::span<const Shape> shapes() {
  static const std::array<Shape, 5> all = {
      {{"first", {7, 5}}, {"bias", {13}}, {"single", {1}}, {"large", {64, 3}}, {"last", {2, 17}}}};
  return all;
}

Kind kind_of(const Case& c, std::size_t parameter) {
  if (c.quirk == "mixed-types" && parameter == 1) {
    return c.wide ? Kind::Float : Kind::Bf16;
  }
  if (c.quirk == "mixed-types" && parameter == 4) {
    return Kind::Bf16;
  }
  return c.wide ? Kind::Double : Kind::Float;
}

bool is_frozen(const Case& c, std::size_t parameter) {
  return c.quirk == "frozen" && parameter == 1;
}

double initial(std::size_t worker, std::size_t parameter, std::size_t element) {
  return Random(1).stream(worker).stream(parameter).normal(element);
}

double target(std::size_t worker, std::uint64_t step, std::size_t term, std::size_t parameter,
              std::size_t element) {
  const Random draw = Random(2).stream(worker).stream(step).stream(term).stream(parameter);
  return static_cast<double>(worker) + draw.uniform(element);
}

std::size_t terms_of(const Case& c, std::size_t worker, std::uint64_t step, std::size_t parameter) {
  if (is_frozen(c, parameter) || (c.quirk == "never-used" && parameter == 3) ||
      (c.quirk == "unused" && (worker + step + parameter) % 3 == 0)) {
    return 0;
  }
  if (c.quirk == "micro-batches") {
    return 3;
  }
  return c.quirk == "two-forwards" || (c.quirk == "twice" && parameter == 3) ? 2 : 1;
}

bool overflows(const Case& c, std::size_t worker, std::uint64_t step) {
  return c.quirk == "skips" && (7 * worker + step) % 11 == 0;
}

double samples(const Case& c, std::size_t worker, std::uint64_t step) {
  return c.quirk == "samples" ? static_cast<double>(1 + (worker + step) % 3) : kBatch;
}

void Fingerprint::add(std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    hash_ = (hash_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  }
}

}  // namespace starling::test
