// `braid serve` as a person starts it, and its answers.
#pragma once

#include <csignal>

#include "base/file.h"
#include "serve/body/fields.h"
#include "serve/messages.h"
#include "serve/raw_client.h"
#include "workplace.h"

namespace braid {

class Serve : public Workplace {
 protected:
  // A server on a free port, ready to make pictures.
  void start(std::vector<std::string> flags = {}, std::vector<std::string> environment = {}) {
    flags.insert(flags.begin(), {"serve", "--port", "0"});
    server_.emplace(
        Invocation{.arguments = flags, .environment = std::move(environment), .folder = folder_});
    ASSERT_TRUE(server_->wait_for("event=ready"));
    const auto& log = server_->err();
    port_ = std::stoi(log.substr(log.find("port=") + 5));
  }
  std::string ask(const std::string& line, const std::string& body = "",
                  const std::string& type = "application/json") const {
    serve::RawClient client(port_);
    client.send(line + head_of(body, type) + "connection: close\r\n\r\n" + body);
    const auto answer = client.read_all();
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }
  static std::string head_of(const std::string& body,
                             const std::string& type = "application/json") {
    return " HTTP/1.1\r\nhost: localhost\r\ncontent-type: " + type +
           "\r\ncontent-length: " + std::to_string(body.size()) + "\r\n";
  }
  // The files of the pictures in an answer.
  std::vector<std::string> pictures_for(const std::string& json) const {
    return pictures_in(ask("POST /v1/images/generations", json));
  }
  static std::vector<std::string> pictures_in(const std::string& answer) {
    std::vector<std::string> files;
    const auto json = nlohmann::json::parse(answer);
    EXPECT_TRUE(json.contains("data")) << answer;
    for (const auto& picture : json.value("data", nlohmann::json::array()))
      files.push_back(serve::bytes_of_base64(picture["b64_json"].get<std::string>(), ""));
    return files;
  }
  std::string drawn(std::vector<std::string> arguments, const std::string& name) const {
    arguments.insert(arguments.begin(), {"generate", "-q", "--overwrite", "always"});
    EXPECT_EQ(braid(std::move(arguments)).exit_code, 0);
    return read_file(folder_ / name);
  }
  // Flags are refused before it listens. Its port is taken, so that those which are not refused end
  // at once, too.
  void expect_no_start(std::vector<std::string> flags, const std::string& words) const {
    const TakenPort taken;
    flags.insert(flags.begin(), {"serve", "--port", std::to_string(taken.number())});
    const auto finished = braid(std::move(flags));
    expect_refusal(finished, 2, words);
    EXPECT_THAT(finished.err, testing::Not(testing::HasSubstr("listening")));
  }
  Finished stop(int signal = SIGTERM) {
    server_->send(signal);
    return server_->finish();
  }

  std::optional<Subprocess> server_;
  int port_ = 0;
};

// The variables that torchrun would set, with one process per rank.
inline std::vector<std::string> rank_of_two(int rank, int port) {
  return {
      "RANK=" + std::to_string(rank), "LOCAL_RANK=" + std::to_string(rank),  "WORLD_SIZE=2",
      "MASTER_ADDR=127.0.0.1",        "MASTER_PORT=" + std::to_string(port), "OMP_NUM_THREADS=1"};
}

}  // namespace braid
