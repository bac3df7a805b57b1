// `braid serve` as a person starts it: pictures with the bytes of `braid generate`, and a shutdown
// that loses nothing.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/base64.h"
#include "base/error.h"
#include "image/picture_file.h"
#include "serving.h"

namespace braid::serve_test {

using testing::HasSubstr;

TEST_F(Serve, GivesTheBytesOfGenerate) {
  start();
  const auto one = pictures_for(
      R"({"prompt": "a red circle \u2605", "negative_prompt": "b", "true_cfg": 2, "seed": 3,
          "size": "64x48", "steps": 3, "guidance": 4, "prompt_2": "c"})");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0], drawn({"a red circle \xe2\x98\x85", "--negative-prompt", "b", "--true-cfg", "2",
                           "--seed", "3", "--size", "64x48", "--steps", "3", "--guidance", "4",
                           "--prompt-2", "c"},
                          "braid.png"));
  const auto two = pictures_for(R"({"prompt": "a", "n": 2, "seed": 18446744073709551615,
                                    "size": "32x32", "steps": 2})");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1], drawn({"a", "--seed", "0", "--size", "32x32", "--steps", "2"}, "braid.png"));
  EXPECT_EQ(stop().exit_code, 0);
}

// What a client of the web UI reads in a text and sends back draws the same picture, whichever
// endpoint the text is of, and whichever format.
TEST_F(Serve, SaysInEveryTextOfTheWebUiWhatDrawsThePicture) {
  start();
  const auto web_ui = [&](const std::string& path, const nlohmann::json& wish) {
    return nlohmann::json::parse(ask("POST /sdapi/v1/" + path, wish.dump()));
  };
  const auto pixels = [](const nlohmann::json& image) {
    return decode_picture(serve::bytes_of_base64(image.get<std::string>(), ""), "it").rgb;
  };
  const nlohmann::json size = {
      {"prompt", "a"}, {"seed", 5}, {"steps", 2}, {"width", 32}, {"height", 32}};
  const auto plain = [&](nlohmann::json more) {
    more.update(size);
    return web_ui("txt2img", more);
  };
  nlohmann::json guided = {{"negative_prompt", "b"},
                           {"cfg_scale", 3},
                           {"distilled_cfg_scale", 2.5},
                           {"sampler_name", "Heun"},
                           {"scheduler", "Beta"}};
  const std::string line =
      "Steps: 2, Sampler: Heun, Schedule type: Beta, CFG scale: 3, Distilled CFG Scale: 2.5, Seed: "
      "5";
  for (const auto& [more, begin] : std::vector<std::pair<nlohmann::json, std::string>>{
           {guided, "a\nNegative prompt: b\n" + line},
           {{{"distilled_cfg_scale", 2.5}},
            "a\nSteps: 2, Sampler: Euler, CFG scale: 1, Distilled CFG Scale: 2.5, Seed: 5"}}) {
    const auto answer = plain(more);
    const auto info = nlohmann::json::parse(answer["info"].get<std::string>());
    EXPECT_THAT(info["infotexts"][0].get<std::string>(), testing::StartsWith(begin));
    const auto told = web_ui("png-info", {{"image", answer["images"][0]}});
    EXPECT_EQ(told["info"], info["infotexts"][0]);
    EXPECT_EQ(told["items"]["guidance"], "2.5");
  }
  const auto jpeg = pictures_for(R"({"prompt": "a", "negative_prompt": "b", "true_cfg": 3,
      "guidance": 2.5, "sampler": "heun", "schedule": "beta", "seed": 5, "steps": 2,
      "size": "32x32", "output_format": "jpeg"})");
  const auto of_jpeg = web_ui("png-info", {{"image", base64(jpeg.at(0))}});
  EXPECT_THAT(of_jpeg["info"].get<std::string>(), HasSubstr("\n" + line + ","));
  EXPECT_EQ(of_jpeg["items"]["true_cfg"], "3");
  EXPECT_EQ(of_jpeg["items"]["sampler"], "heun");
  const auto png = pictures_for(R"({"prompt": "a", "negative_prompt": "b", "true_cfg": 3,
      "guidance": 2.5, "sampler": "heun", "schedule": "beta", "seed": 5, "steps": 2,
      "size": "32x32"})");
  EXPECT_EQ(pixels(plain(guided)["images"][0]), decode_picture(png.at(0), "it").rgb);
}

TEST_F(Serve, PreviewsChangeNoByte) {
  start({"--tp", "2", "--dtype", "float32"});
  const auto events = ask("POST /v1/images/generations",
                          R"({"prompt": "a", "seed": 5, "size": "32x32", "steps": 4,
                               "stream": true, "partial_images": 3})");
  EXPECT_THAT(events, HasSubstr("image_generation.partial_image"));
  const auto begin =
      events.find("\"b64_json\":\"", events.find("event: image_generation.completed"));
  const auto text = events.substr(begin + 12, events.find('"', begin + 12) - begin - 12);
  EXPECT_EQ(serve::bytes_of_base64(text, ""),
            drawn({"a", "--seed", "5", "--size", "32x32", "--steps", "4", "--tp", "2", "--dtype",
                   "float32"},
                  "braid.png"));
}

TEST_F(Serve, SharesTheBranchesOfGuidanceAmongRanks) {
  start({"--cfg-parallel", "2", "--dtype", "float32"});
  const auto guided = pictures_for(R"({"prompt": "a", "negative_prompt": "b", "true_cfg": 2,
                                       "seed": 5, "size": "32x32", "steps": 2})");
  EXPECT_EQ(guided.front(),
            drawn({"a", "--negative-prompt", "b", "--true-cfg", "2", "--seed", "5", "--size",
                   "32x32", "--steps", "2", "--cfg-parallel", "2", "--dtype", "float32"},
                  "braid.png"));
  EXPECT_THAT(ask("POST /v1/jobs", R"({"prompt": "a", "size": "32x32"})"),
              HasSubstr("cfg 2 needs as many branches, there is 1: give a negative prompt"));
}

TEST_F(Serve, RanksMayBeProcesses) {
  const std::vector<std::string> layout = {"--tp", "2", "--dtype", "float32"};
  const auto port = free_port();
  std::vector<std::string> flags = {"serve", "--port", "0"};
  flags.insert(flags.end(), layout.begin(), layout.end());
  Subprocess other({.arguments = flags, .environment = rank_of_two(1, port), .folder = folder_});
  start(layout, rank_of_two(0, port));
  const std::string json = R"({"prompt": "a", "seed": 5, "size": "32x32", "steps": 3})";
  const auto first = pictures_for(json);
  EXPECT_EQ(first.front(), drawn({"a", "--seed", "5", "--size", "32x32", "--steps", "3", "--tp",
                                  "2", "--dtype", "float32"},
                                 "braid.png"));
  const auto long_job = nlohmann::json::parse(
      ask("POST /v1/jobs", R"({"prompt": "a", "size": "512x512", "steps": 200})"));
  const auto path = "/v1/jobs/" + long_job.at("id").get<std::string>();
  while (nlohmann::json::parse(ask("GET " + path)).at("state") != "running") {
  }
  ask("DELETE " + path);
  EXPECT_EQ(pictures_for(json), first) << "all ranks heard of the cancel, and go on";
  other.send(SIGTERM);  // as launchers do: only the first rank may decide
  EXPECT_EQ(pictures_for(json), first);
  EXPECT_EQ(stop().exit_code, 0);
  EXPECT_EQ(other.finish().exit_code, 0);
}

using SlowServe = Serve;

// One and two threads each, as they share their cores; what each reaches is in a file.
TEST_F(SlowServe, PicturesNameTheSharesThatProcessesSettle) {
  const auto caches = folder_ / "caches";
  const auto drawn_by_two = [&] {
    const auto port = free_port();
    const auto environment = [&](int rank) {
      auto variables = rank_of_two(rank, port);
      variables.push_back("XDG_CACHE_HOME=" + caches.string());
      return variables;
    };
    Subprocess other({.arguments = {"serve", "--tp", "2", "--shares", "auto", "--threads", "4"},
                      .environment = environment(1),
                      .folder = folder_});
    start({"--tp", "2", "--shares", "auto", "--threads", "2"}, environment(0));
    const auto picture = pictures_for(R"({"prompt": "a", "size": "32x32", "steps": 1})").front();
    EXPECT_EQ(stop().exit_code, 0);
    EXPECT_EQ(other.finish().exit_code, 0);
    return picture;
  };
  (void)drawn_by_two();
  for (const auto& entry : std::filesystem::directory_iterator(caches / "braid/speeds")) {
    auto speed = nlohmann::json::parse(read_file(entry.path()));
    const bool is_first = entry.path().string().find("-1-thread.") != std::string::npos;
    speed["flops"] = is_first ? 3e9 : 8e9;
    write_file(entry.path(), speed.dump());
  }
  EXPECT_THAT(drawn_by_two(), HasSubstr("tp=3:8"));
}

TEST_F(Serve, EndsWhenARankIsLost) {
  const auto port = free_port();
  Subprocess other({.arguments = {"serve", "--tp", "2"},
                    .environment = rank_of_two(1, port),
                    .folder = folder_});
  start({"--tp", "2"}, rank_of_two(0, port));
  other.send(SIGKILL);
  const auto finished = server_->finish();
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("rank 1"));
}

TEST_F(Serve, FinishesWhatItAcceptedWhenItIsStopped) {
  start();
  serve::RawClient client(port_);
  const std::string json = R"({"prompt": "a", "n": 3, "size": "64x64"})";
  client.send("POST /v1/images/generations" + head_of(json) + "\r\n" + json);
  while (nlohmann::json::parse(ask("GET /v1/status"))["running"] == 0) {
  }
  EXPECT_EQ(stop().exit_code, 0);
  EXPECT_THAT(client.read_all(), HasSubstr("b64_json"));
}

TEST_F(Serve, IsEndedByHangUpAndByNoUsersSignal) {
  start();
  for (const auto& [signal, name] :
       std::vector<std::pair<int, std::string>>{{SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}}) {
    server_->send(signal);
    ASSERT_TRUE(server_->wait_for("message=\"" + name + " is ignored\""));
  }
  EXPECT_THAT(ask("GET /readyz"), HasSubstr("ready"));
  const auto finished = stop(SIGHUP);
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("event=drain signal=SIGHUP seconds=30"));
}

TEST_F(Serve, CutsLongWorkShortAfterItsTime) {
  start({"--drain", "0"});
  ask("POST /v1/jobs", R"({"prompt": "a", "n": 10, "steps": 200, "size": "512x512"})");
  const auto finished = stop(SIGINT);
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("state=cancelled"));
}

// More than a pipe holds, 64 KiB.
class ServeUnread : public Serve {
 protected:
  static constexpr std::size_t kRequests = 100;

  void fill_log() const {
    const std::string path(900, 'a');
    for (std::size_t i = 0; i < kRequests; ++i)
      EXPECT_THAT(ask("GET /" + path), HasSubstr("error"));
  }
};

TEST_F(ServeUnread, GoesOnWhereNobodyReadsItsLog) {
  start();
  fill_log();
  EXPECT_THAT(ask("GET /livez"), HasSubstr("alive"));
  EXPECT_EQ(pictures_for(R"({"prompt": "a", "size": "32x32", "steps": 1})").size(), 1u);
  const auto finished = stop();
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, testing::EndsWith("event=stopped\n"));
  std::size_t num_logged = 0;
  for (auto at = finished.err.find("status=404"); at != std::string::npos;
       at = finished.err.find("status=404", at + 1))
    ++num_logged;
  EXPECT_EQ(num_logged, kRequests) << "no line is lost that this reader takes late";
}

TEST_F(ServeUnread, EndsWhereNobodyReadsItsLog) {
  start();
  fill_log();
  server_->send(SIGTERM);
  EXPECT_EQ(server_->finish_unread().exit_code, 0);
}

TEST_F(ServeUnread, EndsAtOnceAtTheSecondSignal) {
  start({"--drain", "600"});
  ask("POST /v1/jobs", R"({"prompt": "a", "n": 10, "steps": 200, "size": "512x512"})");
  fill_log();
  server_->send(SIGTERM);
  while (ask("GET /readyz").find("draining") == std::string::npos) {
  }
  server_->send(SIGTERM);
  EXPECT_EQ(server_->finish_unread().exit_code, 128 + SIGTERM);
}

// A pipe that takes nothing more.
class FullPipe {
 public:
  FullPipe() {
    if (::pipe2(ends_, O_NONBLOCK) != 0) throw std::runtime_error("there is no pipe");
    while (::write(ends_[1], "x", 1) == 1) {
    }
  }
  ~FullPipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;
  std::string path() const { return text_of("/proc/", ::getpid(), "/fd/", ends_[1]); }

 private:
  int ends_[2];
};

TEST(Failures, EndAProgramWhoseComplaintNobodyReads) {
  const FullPipe full;
  const auto onto_pipe = "exec \"$@\" 2>" + full.path();
  const auto finished = Subprocess({.arguments = {"info", "-m", "/no/such/model"},
                                    .launcher = {"/bin/sh", "-c", onto_pipe, "sh"}})
                            .finish();
  EXPECT_EQ(finished.exit_code, 2);
}

TEST_F(Serve, KeepsPromptsOutOfItsLog) {
  start();
  pictures_for(R"({"prompt": "my secret", "size": "32x32", "steps": 1})");
  EXPECT_THAT(stop().err, testing::Not(HasSubstr("secret")));
  start({"--log-prompts"});
  pictures_for(R"({"prompt": "my secret", "size": "32x32", "steps": 1})");
  EXPECT_THAT(stop().err, HasSubstr("prompt=\"my secret\""));
}

// The shell gives one for <(command).
TEST_F(Serve, ReadsItsKeyFromAPipe) {
  const auto pipe = folder_ / "key";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << " a key of some length \r\nand more\n"; });
  start({"--api-key-file", pipe});
  writer.join();
  const auto answer_with = [&](const std::string& key) {
    serve::RawClient client(port_);
    client.send("GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer " + key +
                "\r\nconnection: close\r\n\r\n");
    return client.read_all();
  };
  EXPECT_THAT(answer_with("a key of some length"), testing::StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer_with("another key of a length"), testing::StartsWith("HTTP/1.1 401"));
}

// Even an empty one was meant to protect.
TEST_F(Serve, RefusesAVariableThatIsNoKey) {
  const TakenPort taken;
  for (const auto* const key : {"", "short"}) {
    Subprocess server({.arguments = {"serve", "--port", std::to_string(taken.number())},
                       .environment = {std::string("BRAID_API_KEY=") + key},
                       .folder = folder_});
    expect_refusal(server.finish(), 2,
                   "the key in the variable BRAID_API_KEY should have at least 16 characters");
  }
}

TEST_F(Serve, RefusesWhatIsNotSafeOrNotThere) {
  expect_no_start({"--host", "0.0.0.0"}, "--no-key");
  expect_no_start({"--api-key-file", "missing"}, "missing");
  expect_no_start({"--api-key-file", write("short", "abc\n")},
                  "short should have at least 16 characters");
  expect_no_start({"--api-key-file", write("long", std::string(20'000, 'k'))},
                  "long should have at most 4096 characters");
  expect_no_start({"--api-key-file", "/dev/zero"}, "it has more than 65536 bytes");
  expect_no_start({"--api-key-file", "."}, "cannot read the key in .: Is a directory");
  expect_no_start({"--api-key-file", write("odd", "a key with a tab\tin it\n")},
                  "no control characters");
  expect_no_start({"--api-key-file", write("key", std::string(16, 'k')), "--no-key"},
                  "both a key and --no-key");
  expect_bad_input({"serve", "--port", "65536"}, "--port");
  for (const auto* const name :
       {"", "https://example.org", "example.org:80", "a b", "*.", ".", "a.*.org"})
    expect_no_start({"--allow-host", name}, "--allow-host should be a name alone");
  expect_no_start({"--allow-host", "*"}, "that takes a key");
  for (const auto* const page : {"", "example.org", "https://", "https://example.org/", "Null "})
    expect_no_start({"--allow-origin", page}, "such as https://example.org");
  for (const auto* const path : {"pictures", "//evil.example", "/a/../b", "/a b"})
    expect_no_start({"--base-path", path}, "a path such as /pictures");
  for (const auto* const page : {"", "https://a.example; script-src *", "a b"})
    expect_no_start({"--frame-ancestors", page}, "--frame-ancestors should be self, none");
  expect_no_start({"--unknown-fields", "ignore"}, "refuse, warn");
  expect_no_start({"--max-body", "10"}, "between 1024 and 1073741824 bytes");
  expect_no_start({"--max-body", "2GB"}, "1073741824 bytes, it is '2GB'");
  expect_no_start({"--served-model-name", "a,,b"}, "--served-model-name should be a name");
  expect_no_start({"--served-model-name", "a", "--served-model-name", "a"}, "two are called a");
  expect_no_start({"--unix-socket", ""}, "--unix-socket should be a path, it is empty");
  expect_refusal(braid({"serve", "--unix-socket", write("file", "")}), 2, "another kind of file");
  expect_no_start({"--unix-socket", "a"}, "a Unix socket has no port");
  expect_no_start({"--max-pixels", "255"},
                  "--max-pixels should be at least 256: the smallest picture of this model has "
                  "16x16 pixels, it is 255");
  expect_no_start({"--host", "example.org", "--no-key"}, "the address to listen on");
  expect_no_start({"-m", "missing"}, "missing");
  expect_no_start({"--host-memory", "10MB"}, "a smaller --max-pixels or more devices would help");
  start({"--allow-host", "Pictures.Example.org"});
  serve::RawClient client(port_);
  client.send("GET /readyz HTTP/1.1\r\nhost: pictures.example.org\r\nconnection: close\r\n\r\n");
  EXPECT_THAT(client.read_all(), testing::StartsWith("HTTP/1.1 200"));
  const auto second = braid({"serve", "--port", std::to_string(port_)});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("Address already in use"));
}

}  // namespace braid::serve_test
