#include "bench/rivals/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>

#include "starling/base/error.h"

namespace starling::rivals {
namespace {

std::vector<long> numbers(std::string_view option, std::string_view text, long lowest) {
  std::vector<long> values;
  while (true) {
    const std::size_t comma = text.find(',');
    values.push_back(parse_number(option, text.substr(0, comma), lowest));
    if (comma == std::string_view::npos) {
      return values;
    }
    text.remove_prefix(comma + 1);
  }
}

std::vector<Size> sizes_of(const std::vector<long>& bytes, const std::vector<long>& repetitions) {
  require(!bytes.empty() && !repetitions.empty(), "--bytes and --repetitions are needed");
  require(bytes.size() == repetitions.size(), "{} sizes, but {} numbers of repetitions",
          bytes.size(), repetitions.size());
  std::vector<Size> sizes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    require(bytes[i] % sizeof(float) == 0, "{} bytes are no whole number of floats", bytes[i]);
    sizes.push_back({static_cast<std::size_t>(bytes[i]), static_cast<int>(repetitions[i])});
  }
  return sizes;
}

}  // namespace

long parse_number(std::string_view what, std::string_view text, long lowest) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc{} && end == text.data() + text.size() && value >= lowest &&
              value <= 1'000'000'000'000,
          "{}: '{}' is not a number from {} to 10^12", what, text, lowest);
  return value;
}

Plan parse(int argc, const char* const* argv, std::initializer_list<std::string_view> own) {
  Plan plan;
  std::vector<long> bytes;
  std::vector<long> repetitions;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--private") {
      plan.is_private = true;
      continue;
    }
    const bool is_own = std::find(own.begin(), own.end(), option) != own.end();
    require(is_own || option == "--bytes" || option == "--repetitions" || option == "--warmup",
            "unknown option '{}'", option);
    require(++i < argc, "{} needs a value", option);
    if (is_own) {
      plan.options.insert_or_assign(std::string(option), argv[i]);
    } else if (option == "--bytes") {
      bytes = numbers(option, argv[i], 1);
    } else if (option == "--repetitions") {
      repetitions = numbers(option, argv[i], 1);
    } else {
      plan.warmup = static_cast<int>(parse_number(option, argv[i], 0));
    }
  }
  plan.sizes = sizes_of(bytes, repetitions);
  return plan;
}

int exit_code(std::string_view program, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return error.code() == ErrorCode::Input ? 2 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return 1;
  }
}

}  // namespace starling::rivals
