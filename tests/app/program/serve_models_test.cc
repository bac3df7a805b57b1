// `braid serve` with LoRAs by name and several models: the bytes of `braid generate` with the same
// files.
#include <cstring>

#include "serving.h"
#include "wait_until.h"

namespace braid::serve_models_test {

using testing::HasSubstr;

class ServeModels : public Serve {
 protected:
  // A LoRA for the demo model's first layer, with one value throughout.
  void write_lora(const std::string& name, float value, std::int64_t columns = 64) const {
    const nlohmann::json header = {
        {"diffusion_model.img_in.lora_A.weight",
         {{"dtype", "F32"}, {"shape", {1, columns}}, {"data_offsets", {0, 4 * columns}}}},
        {"diffusion_model.img_in.lora_B.weight",
         {{"dtype", "F32"},
          {"shape", {192, 1}},
          {"data_offsets", {4 * columns, 4 * (columns + 192)}}}}};
    const auto text = header.dump();
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; ++i) bytes[std::size_t(i)] = char(text.size() >> (8 * i));
    bytes += text;
    for (std::int64_t i = 0; i < columns + 192; ++i)
      bytes.append(reinterpret_cast<const char*>(&value), 4);
    std::filesystem::create_directories(folder_ / "loras");
    write("loras/" + name + ".safetensors", bytes);
  }
  std::string made(const std::string& more) const {
    const auto files =
        pictures_for(R"({"prompt": "a", "seed": 5, "size": "32x32", "steps": 3)" + more + "}");
    return files.empty() ? "" : files.front();
  }
  double resident() const {
    const auto metrics = ask("GET /metrics");
    const std::string gauge = "braid_memory_bytes{device=\"host\"} ";
    return std::stod(metrics.substr(metrics.find(gauge) + gauge.size()));
  }
  std::string drawn_with(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"a", "--seed", "5", "--size", "32x32", "--steps", "3"});
    return drawn(std::move(arguments), "braid.png");
  }
};

using SlowServeModels = ServeModels;

TEST_F(SlowServeModels, ChangeByLorasThatRequestsName) {
  write_lora("ink", 0.25);
  write_lora("odd", 0.25, 63);
  start({"--lora-dir", "loras"});
  const auto plain = drawn_with({});
  const auto inked = drawn_with({"--lora", "loras/ink.safetensors=0.5", "--lora-mode", "beside"});
  ASSERT_NE(plain, inked);
  EXPECT_EQ(made(""), plain);
  EXPECT_EQ(made(R"(, "lora": [{"name": "ink", "scale": 0.5}])"), inked);
  EXPECT_EQ(made(""), plain) << "as before";
  EXPECT_THAT(ask("POST /v1/images/generations",
                  R"({"prompt": "a", "size": "32x32", "lora": [{"name": "odd"}]})"),
              HasSubstr("invalid_request_error"));
  EXPECT_EQ(made(R"(, "lora": [{"name": "ink", "scale": 0.5}])"), inked) << "nothing is left of it";
  write_lora("new", 0);
  EXPECT_THAT(ask("GET /sdapi/v1/loras"), HasSubstr("\"new\"")) << "found without a restart";
  EXPECT_THAT(ask("POST /v1/jobs", R"({"prompt": "a", "lora": [{"name": "../loras/ink"}]})"),
              HasSubstr("lora_not_found"));
}

TEST_F(ServeModels, AreSeveralOfWhichOneIsLoaded) {
  std::filesystem::create_symlink(std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo",
                                  folder_ / "other");
  const auto first = drawn_with({}), second = drawn_with({"-m", "other"});
  ASSERT_NE(first, second) << "the picture names its model";
  start({"-m", BRAID_SOURCE_DIR "/models/demo", "-m", "other"});
  EXPECT_THAT(ask("GET /v1/models"), HasSubstr("\"other\""));
  EXPECT_EQ(made(""), first);
  EXPECT_EQ(made(R"(, "model": "other")"), second);
  EXPECT_EQ(made(""), first);
  EXPECT_EQ(stop().exit_code, 0);
}

TEST_F(ServeModels, ThatAreMovedAwayAreTheServersFault) {
  std::filesystem::copy(std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo",
                        folder_ / "other", std::filesystem::copy_options::recursive);
  start({"-m", BRAID_SOURCE_DIR "/models/demo", "-m", "other"});
  std::filesystem::rename(folder_ / "other", folder_ / "elsewhere");
  for (const std::string path : {"/v1/images/generations", "/v1/tokens"}) {
    const auto answer = ask("POST " + path, R"({"prompt": "a", "model": "other"})");
    EXPECT_THAT(answer, HasSubstr("server_error")) << path;
    EXPECT_THAT(answer, HasSubstr("the model 'other' cannot be loaded"));
    EXPECT_THAT(answer, testing::Not(HasSubstr(folder_.string())));
  }
  std::filesystem::rename(folder_ / "elsewhere", folder_ / "other");
  EXPECT_NE(made(R"(, "model": "other")"), "") << "once it is back";
}

// Where its downloader puts it, a model's folder is called by a commit.
TEST_F(ServeModels, OfHuggingFacesCacheAreCalledByTheirNames) {
  const auto snapshot = folder_ / "hub/models--org--FLUX.1-dev/snapshots/3de623fc3c33e44f";
  std::filesystem::create_directories(snapshot.parent_path());
  std::filesystem::create_symlink(std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo",
                                  snapshot);
  start({"-m", snapshot});
  EXPECT_THAT(ask("GET /v1/models"), HasSubstr("\"id\":\"FLUX.1-dev\""));
  const auto picture = made(R"(, "model": "FLUX.1-dev")");
  EXPECT_THAT(picture, HasSubstr("FLUX.1-dev")) << "in the picture's text";
  EXPECT_THAT(picture, testing::Not(HasSubstr("3de623fc")));
  EXPECT_EQ(picture, drawn_with({"-m", snapshot}));
  EXPECT_EQ(made(R"(, "model": "org/FLUX.1-dev")"), picture);
  EXPECT_EQ(made(R"(, "model": "gpt-image-1")"), picture) << "wired in by clients";
}

TEST_F(SlowServeModels, HaveTheNamesThatTheyAreGiven) {
  std::filesystem::create_symlink(std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo",
                                  folder_ / "other");
  const auto first = drawn_with({}), second = drawn_with({"-m", "other"});
  start({"-m", BRAID_SOURCE_DIR "/models/demo", "--served-model-name", "a,dall-e-3", "-m", "other",
         "--served-model-name", "b"});
  const auto models = ask("GET /v1/models");
  for (const auto* const name : {"a", "dall-e-3", "b"})
    EXPECT_THAT(models, HasSubstr(std::string("\"id\":\"") + name + "\""));
  EXPECT_THAT(models, testing::Not(HasSubstr("other")));
  EXPECT_EQ(made(R"(, "model": "b")"), second) << "pictures keep the model's own name";
  EXPECT_EQ(made(R"(, "model": "other")"), second);
  EXPECT_EQ(made(R"(, "model": "dall-e-3")"), first);
  EXPECT_THAT(ask("POST /sdapi/v1/unload-checkpoint"), HasSubstr("{}"));
  EXPECT_EQ(made(R"(, "model": "a")"), first) << "loaded again";
  start({"--served-model-name", "one", "--served-model-name", "two"});
  EXPECT_EQ(made(R"(, "model": "two")"), first);
}

// The C library keeps what is freed unless it is told.
TEST_F(SlowServeModels, GiveTheirMemoryBackWhenTheyAreUnloaded) {
  start();
  EXPECT_EQ(pictures_for(R"({"prompt": "a", "size": "512x512", "steps": 1})").size(), 1u);
  const auto before = resident();
  ask("POST /sdapi/v1/unload-checkpoint");
  EXPECT_TRUE(wait_until([&] { return resident() < before - 40e6; }, std::chrono::seconds(20)))
      << resident() << " of " << before;
}

// Three copies of the same model, by different names, one after another.
TEST_F(SlowServeModels, LeaveTheLeastRecentlyUsedWhereTheBudgetIsFull) {
  std::vector<std::string> models;
  for (const auto* const name : {"a", "b", "c"}) {
    std::filesystem::create_symlink(std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo",
                                    folder_ / name);
    models.insert(models.end(), {"-m", name});
  }
  const auto resident_with = [&](const std::string& budget) {
    auto flags = models;
    flags.insert(flags.end(), {"--dtype", "float32", "--host-memory", budget});
    start(flags);
    for (const auto* const name : {"b", "c", "a", "b"})
      EXPECT_NE(made(R"(, "model": ")" + std::string(name) + "\""), "");
    const auto bytes = resident();
    EXPECT_EQ(stop().exit_code, 0);
    return bytes;
  };
  // Two more stay loaded, each about 30 MB in float32.
  EXPECT_GT(resident_with("2GB"), resident_with("300MB") + 40e6);
}

TEST_F(ServeModels, AreRefusedBeforeTheyAreLoaded) {
  expect_no_start({"--lora-dir", "missing"}, "--lora-dir should be a folder");
  expect_no_start({"--lora-dir", ".", "--lora-mode", "fused"}, "beside the weights");
  expect_no_start({"-m", "a/b", "-m", "c/b"}, "two are called b");
  expect_no_start({"-m", "a", "-m", "b", "--served-model-name", "c"}, "there are 1 for 2");
  expect_no_start({"-m", "a", "-m", "b", "--vae-file", "c"}, "should be a directory");
  Subprocess rank({.arguments = {"serve", "-m", "a", "-m", "b"},
                   .environment = rank_of_two(0, free_port()),
                   .folder = folder_});
  expect_refusal(rank.finish(), 2, "ranks that are processes cannot serve several models");
}

// This happens before the server listens, which would refuse all their requests.
TEST_F(ServeModels, AreRefusedIfNoRequestCouldRun) {
  const std::string demo = BRAID_SOURCE_DIR "/models/demo",
                    klein = BRAID_SOURCE_DIR "/tests/data/parity/klein/model";
  expect_no_start({"-m", demo, "-m", "missing"}, "missing");
  expect_no_start({"-m", klein, "--cfg-parallel", "2"}, "cfg 2 needs as many branches");
  expect_no_start({"-m", demo, "-m", klein, "--cfg-parallel", "2"},
                  "no request could run on " + klein);
  expect_no_start({"-m", demo, "--tp", "13"}, "tp 13 leaves a rank without a head");
  expect_no_start({"-m", demo, "--layer-split", "100"},
                  "pipeline parallelism 100 leaves a rank without a block");
}

}  // namespace braid::serve_models_test
