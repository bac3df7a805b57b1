// `braid serve` with ranks as processes: what happens when one is lost, or finds what others do
// not.
#include <ATen/ATen.h>

#include <chrono>
#include <list>

#include "serving.h"
#include "weights/files/safetensors_writer.h"

namespace braid::serve_processes_test {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

class ServeProcesses : public Serve {
 protected:
  // The second rank works in `other`, below the workplace.
  void start_two(const std::vector<std::string>& more = {}) {
    std::vector<std::string> flags = {"--tp", "2", "--dtype", "float32"};
    flags.insert(flags.end(), more.begin(), more.end());
    const auto port = free_port();
    std::filesystem::create_directories(folder_ / "other");
    auto of_other = flags;
    of_other.insert(of_other.begin(), {"serve", "--port", "0"});
    other_.emplace(Invocation{
        .arguments = of_other, .environment = rank_of_two(1, port), .folder = folder_ / "other"});
    start(flags, rank_of_two(0, port));
  }
  Json status_of(const std::string& path) const { return Json::parse(ask("GET " + path)); }
  void start_endless_job() const {
    const auto job =
        Json::parse(ask("POST /v1/jobs", R"({"prompt": "a", "size": "512x512", "steps": 200})"));
    const auto path = "/v1/jobs/" + job.at("id").get<std::string>();
    while (status_of(path).at("state") != "running") {
    }
  }
  static std::string post(const std::string& json) {
    return "POST /v1/images/generations" + head_of(json) + "connection: close\r\n\r\n" + json;
  }
  std::string answer_to(const std::string& json) const {
    return serve::RawClient(port_).asked(post(json));
  }

  std::optional<Subprocess> other_;
};

const std::string kSmall = R"({"prompt": "a", "seed": 5, "size": "32x32", "steps": 1})";

TEST_F(ServeProcesses, EndAtOnceThoughRequestsKeepComing) {
  start_two();
  start_endless_job();
  std::list<serve::RawClient> waiting, later;
  for (int i = 0; i < 3; ++i) waiting.emplace_back(port_).send(post(kSmall));
  for (int i = 0; i < 20; ++i) later.emplace_back(port_);
  while (status_of("/v1/status").at("waiting") != 3) {
  }
  const auto began = std::chrono::steady_clock::now();
  other_->send(SIGKILL);
  for (auto& client : waiting)
    EXPECT_THAT(client.read_all(), AllOf(HasSubstr("HTTP/1.1 503"), HasSubstr("retry-after: "),
                                         HasSubstr("draining")));
  for (auto& client : later)
    EXPECT_THAT(client.asked(post(kSmall)), AnyOf(IsEmpty(), HasSubstr("HTTP/1.1 503")));
  const auto finished = server_->finish();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, testing::EndsWith("\nbraid: rank 1 failed: its process has ended\n"));
}

using SlowServeProcesses = ServeProcesses;

TEST_F(SlowServeProcesses, SayWhyTheyEndWithoutTheFirst) {
  start_two();
  start_endless_job();
  server_->send(SIGKILL);
  const auto finished = other_->finish();
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err, "braid: rank 1: rank 0 failed: its process has ended\n");
}

TEST_F(SlowServeProcesses, RefuseARequestThatOneOfThemCannotFollow) {
  const auto lora =
      write_safetensors({{"diffusion_model.img_in.lora_A.weight", at::full({1, 64}, 0.25)},
                         {"diffusion_model.img_in.lora_B.weight", at::full({192, 1}, 0.25)}});
  for (const auto* const folder : {"loras", "other/loras"})
    std::filesystem::create_directories(folder_ / folder);
  for (const auto* const name : {"loras/ink", "other/loras/ink", "loras/lacking"})
    write(std::string(name) + ".safetensors", lora);
  start_two({"--lora-dir", "loras"});
  const auto with_lora = [](const std::string& name) {
    auto json = Json::parse(kSmall);
    json["lora"] = {{{"name", name}}};
    return json.dump();
  };
  const auto inked = pictures_for(with_lora("ink"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(answer_to(with_lora("lacking")),
                AllOf(HasSubstr("HTTP/1.1 400"), HasSubstr("rank 1: "), HasSubstr("lacking")));
    EXPECT_EQ(pictures_for(with_lora("ink")), inked) << "all ranks go on";
  }
  EXPECT_EQ(stop().exit_code, 0);
  EXPECT_EQ(other_->finish().exit_code, 0);
}

}  // namespace braid::serve_processes_test
