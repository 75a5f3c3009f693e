// starling run as a user sees it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/launch/processes.h"
#include "tests/tool/tool.h"

namespace starling::tool {
namespace {

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

using Lines = std::vector<std::string>;

// The tool as a child of this process; its stdout is read line by line, its stderr by nobody.
class Running {
 public:
  explicit Running(std::vector<std::string> words) {
    words.insert(words.begin(), STARLING_TOOL);
    std::vector<char*> arguments;
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
      close(ends[0]);
      close(ends[1]);
      execv(STARLING_TOOL, arguments.data());
      _exit(127);
    }
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
  }
  ~Running() {
    stop_reading();
    if (pid_ != 0) {  // the test gave up
      kill(pid_, SIGKILL);
      wait();
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t pid() const { return pid_; }

  void stop_reading() {
    if (out_ != nullptr) {
      std::fclose(std::exchange(out_, nullptr));
    }
  }

  // Empty at the end.
  std::string next_line() {
    std::array<char, 4096> buffer{};
    return std::fgets(buffer.data(), buffer.size(), out_) == nullptr ? "" : buffer.data();
  }

  // Of waitpid.
  int wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
  FILE* out_ = nullptr;
};

// The number after the prefix.
pid_t pid_in(const std::string& line) {
  EXPECT_TRUE(line.starts_with("[")) << line;
  return std::stoi(line.substr(line.find(' ') + 1));
}

TEST(RunCommand, LinesAreToldApart) {
  const Output result = run("run -n 3 -- sh -c 'echo out; echo err >&2; printf rest'");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(sorted_lines(result.out),
            (Lines{"[0] out", "[0] rest", "[1] out", "[1] rest", "[2] out", "[2] rest"}));
  EXPECT_EQ(sorted_lines(result.err), (Lines{"[0] err", "[1] err", "[2] err"}));
}

TEST(RunCommand, WithoutPrefixes) {
  const Output result = run("run -n 2 --no-prefix -- sh -c 'echo out; echo err >&2'");
  EXPECT_EQ(result.out, "out\nout\n");
  EXPECT_EQ(result.err, "err\nerr\n");
}

TEST(RunCommand, WordsOfTheCommandAreItsOwn) {
  for (const char* mark : {"-- ", ""}) {
    const Output result =
        run(fmt::format("run -n 1 {}printf '<%s>\\n' '[a,b]' '' -- --json topology", mark));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, "[0] <[a,b]>\n[0] <>\n[0] <-->\n[0] <--json>\n[0] <topology>\n");
  }
}

TEST(RunCommand, ExitsAsTheFirstThatFailed) {
  const Output exited = run("run -n 2 -- sh -c '[ $STARLING_RANK = 1 ] && exit 3; sleep 1000'");
  EXPECT_EQ(exited.code, 3);
  EXPECT_EQ(exited.err,
            "starling run: worker 1 ended with exit code 3; ended the other 1 worker\n");
  const Output killed = run("run -n 4 -- sh -c '[ $STARLING_RANK = 2 ] && kill -9 $$; sleep 1000'");
  EXPECT_EQ(killed.code, 128 + 9);
  EXPECT_EQ(killed.err,
            "starling run: worker 2 was killed by signal 9 (SIGKILL); ended the other 3 workers\n");
  const Output alone = run("run -n 1 false");
  EXPECT_EQ(alone.code, 1);
  EXPECT_EQ(alone.err, "starling run: worker 0 ended with exit code 1\n");
}

TEST(RunCommand, OnLossContinue) {
  const Output result =
      run("run -n 3 --on-loss continue -- sh -c '[ $STARLING_RANK = 1 ] && exit 3; sleep 0.3; echo "
          "on'");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(sorted_lines(result.out), (Lines{"[0] on", "[2] on"}));
  EXPECT_EQ(result.err, "starling run: 1 of 3 workers failed: worker 1 ended with exit code 3\n");
}

TEST(RunCommand, JsonIsTheLastLine) {
  const Output result = run(
      "run -n 2 --json --on-loss continue -- sh -c 'echo $$; [ $STARLING_RANK = 0 ] || kill $$'");
  EXPECT_EQ(result.code, 1);
  const std::size_t begin = result.out.rfind('\n', result.out.size() - 2) + 1;
  const auto json = nlohmann::json::parse(result.out.substr(begin), nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(json["workers"], 2);
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["lost"], std::vector<int>{1});
  ASSERT_EQ(json["per_worker"].size(), 2u);
  const auto& workers = json["per_worker"];
  EXPECT_EQ(workers[0]["rank"], 0);
  EXPECT_EQ(workers[0]["exit_code"], 0);
  EXPECT_EQ(workers[0]["signal"], nullptr);
  EXPECT_EQ(workers[1]["rank"], 1);
  EXPECT_EQ(workers[1]["exit_code"], nullptr);
  EXPECT_EQ(workers[1]["signal"], SIGTERM);
  for (const auto& worker : workers) {
    EXPECT_GE(worker["seconds"], 0.0);
    EXPECT_TRUE(has(result.out, fmt::format("] {}\n", worker["pid"].get<int>()))) << result.out;
  }
}

TEST(RunCommand, HelpNamesEveryOption) {
  const Output result = run("run --help");
  EXPECT_EQ(result.code, 0);
  for (const char* word :
       {"--workers", "--on-loss", "--grace", "--no-prefix", "--json", "COMMAND", "Exit codes"}) {
    EXPECT_TRUE(has(result.out, word)) << word << " is not in: " << result.out;
  }
}

TEST(RunCommand, MistakesAreNamed) {
  expect_refused("run -n 2 no-such-bird", {"cannot run 'no-such-bird'", "No such file"});
  expect_refused("run -n 0 true", {"0 workers", "1 to 4096"});
  expect_refused("run -n 4097 -- true", {"4097 workers", "1 to 4096"});
  expect_refused("run -n few -- true --lr 3", {"--workers"});
  expect_refused("run -- true", {"--workers"});
  expect_refused("run -n 2", {"command"});
  expect_refused("run -n 2 --on-loss stp -- true", {"--on-loss", "did you mean 'stop'"});
  expect_refused("run -n 2 --grace -1 -- true", {"grace"});
  expect_refused("run -n 2 --grce 1 -- true", {"'--grce'", "did you mean '--grace'"});
  expect_refused("run --grce 1 -n 2 true", {"'--grce'", "did you mean '--grace'"});
}

TEST(RunCommand, ExitsWithTheSignalThatInterruptedIt) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Running tool({"run", "-n", "2", "--", "sh", "-c", "echo $$; exec sleep 1000"});
    const pid_t first = pid_in(tool.next_line());
    const pid_t second = pid_in(tool.next_line());
    kill(tool.pid(), signal);
    const int status = tool.wait();
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
    EXPECT_TRUE(launch::has_ended(first));
    EXPECT_TRUE(launch::has_ended(second));
  }
}

TEST(RunCommand, KilledItselfItLeavesNobody) {
  Running tool({"run", "-n", "2", "--", "sh", "-c", "echo $$; sleep 1000 & echo $!; sleep 1000"});
  std::vector<pid_t> pids;
  for (int i = 0; i < 4; ++i) {
    pids.push_back(pid_in(tool.next_line()));
    EXPECT_FALSE(launch::has_ended(pids.back()));
  }
  kill(tool.pid(), SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(tool.wait()));
  for (const pid_t pid : pids) {
    EXPECT_TRUE(launch::ends(pid));
  }
}

// The process that watches over a tool that is killed, or nothing.
pid_t warden_of(pid_t tool) {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", tool));
  for (pid_t child = 0; children >> child;) {
    std::string name;
    std::ifstream(fmt::format("/proc/{}/comm", child)) >> name;
    if (name == "starling-warden") {
      return child;
    }
  }
  return 0;
}

TEST(RunCommand, KilledItselfAfterItsWardenItLeavesNoWorker) {
  Running tool({"run", "-n", "2", "--", "sh", "-c", "echo $$; exec sleep 1000"});
  const pid_t first = pid_in(tool.next_line());
  const pid_t second = pid_in(tool.next_line());
  const pid_t warden = warden_of(tool.pid());
  ASSERT_NE(warden, 0);
  kill(warden, SIGKILL);
  EXPECT_TRUE(launch::ends(warden));
  EXPECT_FALSE(launch::has_ended(first)) << "a job does not need its warden";
  kill(tool.pid(), SIGKILL);
  tool.wait();
  EXPECT_TRUE(launch::ends(first));
  EXPECT_TRUE(launch::ends(second));
}

TEST(RunCommand, AReaderThatLeavesEndsTheJob) {
  Running tool({"run", "-n", "1", "--", "sh", "-c", "echo $$; while :; do echo and on; done"});
  const pid_t pid = pid_in(tool.next_line());
  tool.stop_reading();
  const int status = tool.wait();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(launch::has_ended(pid));
}

// --- A full disk -------------------------------------------------------------------------------

int exit_code_of(const std::string& arguments) {
  const int status = std::system(fmt::format("'{}' {}", STARLING_TOOL, arguments).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Lines are lost there, and nothing else.
TEST(RunCommand, AFullDiskUnderItsOutputDoesNotEndTheJob) {
  EXPECT_EQ(exit_code_of("run -n 2 -- sh -c 'echo out; echo err >&2' >/dev/full 2>&1"), 0);
}

TEST(RunCommand, AnErrorThatCannotBePrintedHasItsExitCode) {
  EXPECT_EQ(exit_code_of("run -n 0 true 2>/dev/full"), 2);
  EXPECT_EQ(exit_code_of("no-such-bird 2>/dev/full"), 2);
}

// --- Colours -----------------------------------------------------------------------------------

// What the tool prints to a terminal.
std::string on_terminal(bool no_color) {
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    no_color ? setenv("NO_COLOR", "1", 1) : unsetenv("NO_COLOR");
    execl(STARLING_TOOL, "starling", "run", "-n", "2", "--", "echo", "hello", nullptr);
    _exit(127);
  }
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = read(terminal, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  waitpid(pid, nullptr, 0);
  close(terminal);
  return text;
}

TEST(RunCommand, PrefixesHaveColoursOnATerminal) {
  const std::string text = on_terminal(/*no_color=*/false);
  EXPECT_TRUE(has(text, "\x1b[36m[0]\x1b[0m hello")) << text;
  EXPECT_TRUE(has(text, "\x1b[33m[1]\x1b[0m hello")) << text;
}

TEST(RunCommand, NoColorIsObeyed) {
  const std::string text = on_terminal(/*no_color=*/true);
  EXPECT_TRUE(has(text, "[0] hello")) << text;
  EXPECT_FALSE(has(text, "\x1b")) << text;
}

}  // namespace
}  // namespace starling::tool
