// Pages of runs, and following them.

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using Report = Program;
using Watch = Program;

TEST_F(Report, ARunWritesItsPageAndItsNumbersWhenItEnds) {
  put_config("run.txtpb", "checkpoint { every_steps: 2 }\n");
  ASSERT_EQ(run("train run.txtpb --run-dir out --set seed=7").status, 0);
  const std::string page = file_content(folder_ / "out/report.html");
  EXPECT_TRUE(says(page, "<h1>Run out</h1>"));
  EXPECT_TRUE(says(page, "<th scope=\"row\">Ended</th><td>finished</td>"));
  EXPECT_TRUE(says(page, "<td>7</td><td>--set seed=7</td>"));
  EXPECT_TRUE(says(page, "<th scope=\"row\">4</th><td>checkpoint</td>"));
  EXPECT_TRUE(says(page, "train run.txtpb --run-dir out --set seed=7</pre>"));
  EXPECT_EQ(page.find("What is missing"), page.npos);
  EXPECT_TRUE(
      says(file_content(folder_ / "out/metrics.prom"), "lockstep_steps_done{run=\"out\"} 6\n"));
}

TEST_F(Report, APageOfAFinishedRunIsTheOneItWrote) {
  put_config("run.txtpb");
  ASSERT_EQ(run("train run.txtpb --run-dir out").status, 0);
  const Result result = run("report out -o page.html");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "wrote page.html\n");
  EXPECT_EQ(file_content(folder_ / "page.html"), file_content(folder_ / "out/report.html"));
  std::filesystem::remove(folder_ / "out/report.html");
  EXPECT_EQ(run("report out").output, "wrote out/report.html\n");
  EXPECT_EQ(file_content(folder_ / "page.html"), file_content(folder_ / "out/report.html"));
}

TEST_F(Report, ARunThatCannotWriteItsPageIsFinishedAllTheSame) {
  put_config("run.txtpb");
  std::filesystem::create_directories(folder_ / "out/report.html/x");
  const Result result = run("train run.txtpb --run-dir out");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(says(result.errors, "the run's page was not written: "));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/model.safetensors"));
}

TEST_F(Report, SeveralRunsMakeOnePage) {
  put_run("a", 20);
  put_run("b", 30, 0.5);
  const Result result = run("report a b/metrics.jsonl");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "wrote report.html\n");
  EXPECT_TRUE(says(file_content(folder_ / "report.html"), "<h1>Runs a and b</h1>"));
}

TEST_F(Report, WhatHoldsNoRunEndsWithThree) {
  std::filesystem::create_directories(folder_ / "empty");
  put_file(folder_ / "metrics.jsonl", "");
  for (const char* path : {"absent", "empty", "metrics.jsonl"}) {
    const Result result = run(fmt::format("report {}", path));
    EXPECT_EQ(result.status, 3) << path;
    EXPECT_TRUE(says(result.errors, "DataError: "));
  }
  EXPECT_EQ(run("report").status, 2);
  put_run("a", 3);
  EXPECT_EQ(run("report a -o absent/page.html").status, 3);
}

TEST_F(Report, AServedPageAnswersToItsAddressAlone) {
  put_run("a", 20);
  put_file(folder_ / "ask.py", R"(
import http.client, re, subprocess, sys
server = subprocess.Popen([sys.argv[1], 'report', 'a', '--serve', *sys.argv[2:]], stdout=subprocess.PIPE, text=True)
try:
    address = server.stdout.readline()
    host, port, path = re.fullmatch(r'http://(127\.0\.0\.1):(\d+)(/\w{32}/)\n', address).groups()
    def ask(method, path, headers={}):
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        global refresh
        refresh = answer.getheader('Refresh')
        return answer.status, answer.read().decode()
    status, page = ask('GET', path)
    print(status, page.startswith('<!doctype html>'), '<h1>Run a</h1>' in page, refresh)
    open('a/metrics.jsonl', 'a').write('{"step":21,"loss":77.5}\n')
    print('77.5 nats (step 21)' in ask('GET', path)[1])
    print(ask('GET', '/')[0], ask('GET', '/' + 32 * '0' + '/')[0], ask('GET', path + 'x')[0])
    print(ask('POST', path)[0], ask('GET', path, {'Host': 'example.org'})[0])
    print(ask('GET', path)[0])
finally:
    server.terminate()
)");
  if (shell("command -v python3").status != 0) GTEST_SKIP() << "no python3";
  const Result result = shell(fmt::format("python3 ask.py '{}/lockstep'", LOCKSTEP_BIN_DIR));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "200 True True 10\nTrue\n404 404 404\n405 404\n200\n");
  EXPECT_TRUE(shell(fmt::format("python3 ask.py '{}/lockstep' --every 0", LOCKSTEP_BIN_DIR))
                  .output.starts_with("200 True True None\n"));
}

TEST_F(Watch, PrintsTheViewOnceWhereThereIsNoTerminal) {
  put_run("a", 20);
  const Result result = run("watch a", "COLUMNS=60");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(result.output.starts_with("a: step 20")) << result.output;
  EXPECT_TRUE(says(result.output, "Gradient norm"));
  EXPECT_EQ(result.output.find('\x1b'), std::string::npos);
  EXPECT_TRUE(says(run("watch absent --once").output, "waiting for a run in absent\n"));
}

TEST_F(Report, AServedPageOutlivesItsRunAndComesBackWithIt) {
  put_run("a", 20);
  put_file(folder_ / "ask.py", R"(
import http.client, os, re, subprocess, sys
server = subprocess.Popen([sys.argv[1], 'report', 'a', '--serve'], stdout=subprocess.PIPE, text=True)
try:
    host, port, path = re.fullmatch(r'http://([^:]+):(\d+)(/\w+/)\n', server.stdout.readline()).groups()
    def ask():
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        connection.request('GET', path)
        answer = connection.getresponse()
        return answer.status, 'a is not there: expected' in answer.read().decode()
    print(*ask())
    os.rename('a', 'away')
    print(*ask())
    os.rename('away', 'a')
    print(*ask())
finally:
    server.terminate()
)");
  if (shell("command -v python3").status != 0) GTEST_SKIP() << "no python3";
  const Result result = shell(fmt::format("python3 ask.py '{}/lockstep'", LOCKSTEP_BIN_DIR));
  EXPECT_EQ(result.output, "200 False\n500 True\n200 False\n") << result.errors;
}

TEST_F(Report, APortInUseIsTold) {
  put_run("a", 3);
  put_file(folder_ / "ask.py", R"(
import socket, subprocess, sys
taken = socket.socket()
taken.bind(('127.0.0.1', 0))
taken.listen()
port = taken.getsockname()[1]
run = subprocess.run([sys.argv[1], 'report', 'a', '--serve', '--port', str(port)], capture_output=True, text=True, timeout=60)
print(run.returncode, run.stderr.replace(str(port), 'N'))
)");
  if (shell("command -v python3").status != 0) GTEST_SKIP() << "no python3";
  const Result result = shell(fmt::format("python3 ask.py '{}/lockstep'", LOCKSTEP_BIN_DIR));
  EXPECT_TRUE(says(result.output, "[report] port N is in use by another program")) << result.output;
  EXPECT_TRUE(result.output.starts_with("5 ")) << result.output;
}

TEST_F(Watch, ADirectoryThatIsHalfThereIsWaitedForAndAFileRefused) {
  std::filesystem::create_directories(folder_ / "begun");
  put_file(folder_ / "begun/run.lock", "");
  const Result begun = run("watch begun --once");
  EXPECT_EQ(begun.status, 0) << begun.errors;
  EXPECT_TRUE(says(begun.output, "waiting for a run in begun\n"));
  put_run("a", 3);
  const Result file = run("watch a/metrics.jsonl --once");
  EXPECT_EQ(file.status, 3);
  EXPECT_TRUE(says(file.errors, "expected a run directory"));
}

}  // namespace
}  // namespace lockstep::launcher
