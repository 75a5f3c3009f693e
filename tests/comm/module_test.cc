// Modules: found, loaded, and refused in words a user can act on.
#include "starling/comm/module.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "starling/base/error.h"
#include "starling/comm/pmix_rendezvous.h"

namespace starling::comm {
namespace {

namespace fs = std::filesystem;

// The text of the refusal.
std::string refusal(const char* module, const char* symbol) {
  try {
    load_symbol(module, symbol, "Nothing (libnothing1)");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Input);
    return error.what();
  }
  ADD_FAILURE() << module << " was loaded";
  return "";
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << text << "\ndoes not say " << word;
  }
}

// A folder that STARLING_MODULES names.
class Folder : public testing::Test {
 protected:
  Folder()
      : path_(fs::path(testing::TempDir()) / ("starling-modules-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
    setenv("STARLING_MODULES", path_.c_str(), 1);
  }
  ~Folder() override {
    unsetenv("STARLING_MODULES");
    fs::remove_all(path_);
  }
  fs::path path_;
};

TEST(Module, IsFoundWhereItWasBuilt) {
  EXPECT_NE(load_symbol("pmix", kCreatePmixRendezvous, "PMIx (libpmix2)"), nullptr);
}

TEST_F(Folder, IsLookedForFirst) {
  std::ofstream(path_ / "starling_comm_pmix.so") << "no library";
  expect_words(refusal("pmix", kCreatePmixRendezvous),
               {path_.string(), "Nothing (libnothing1)", "file too short"});
}

TEST_F(Folder, IsNamedWhenNothingIsThere) {
  expect_words(refusal("nothing", "start"), {"starling_comm_nothing.so", "Nothing (libnothing1)",
                                             path_.string(), "STARLING_MODULES"});
}

TEST(Module, OfAnotherVersionIsRefused) {
  expect_words(refusal("pmix", "no_such_symbol"), {"another version", "no_such_symbol"});
}

// There is no PMIx server here, and the module says so by throwing.
TEST(Module, ItsErrorsAreOurs) {
  unsetenv("PMIX_RANK");
  unsetenv("PMIX_NAMESPACE");
  try {
    meet(Job{.launcher = Launcher::Pmix, .meet = {}, .secret = {}}, std::chrono::seconds(60));
    FAIL() << "met by PMIx";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Input);
    expect_words(error.what(), {"PMIx"});
  }
}

}  // namespace
}  // namespace starling::comm
