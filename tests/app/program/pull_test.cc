// `braid pull` and `braid models`, from a hub on loopback to a picture.
#include <gmock/gmock.h>

#include <csignal>

#include "base/file.h"
#include "base/hub_cache.h"
#include "net/stand_in_hub.h"
#include "workplace.h"

namespace braid::pull_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const fs::path kDemo = fs::path(BRAID_SOURCE_DIR) / "models/demo";
const char* const kFlux = "transformer/diffusion_pytorch_model.safetensors";

// A hub that has the bundled model, among files that Braid does not read.
class PullModel : public Workplace {
 protected:
  PullModel() {
    for (const auto& entry : fs::recursive_directory_iterator(kDemo))
      if (entry.is_regular_file()) {
        const auto path = fs::relative(entry.path(), kDemo).string();
        hub_.put("org/demo/" + path, read_file(entry.path()));
        demo_.insert(path);
      }
    for (const char* const other :
         {"README.md", ".gitattributes", "demo.safetensors", "vae/diffusion_pytorch_model.bin",
          "vae/diffusion_pytorch_model.fp16.safetensors", "safety_checker/model.safetensors",
          "text_encoder/flax_model.msgpack"})
      hub_.put(std::string("org/demo/") + other, "not read");
    set("HF_ENDPOINT", hub_.endpoint());
    set("HF_HOME", (folder_ / "home").string());
    for (const char* const name :
         {"HF_TOKEN", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN_PATH"})
      ::unsetenv(name);
  }
  ~PullModel() override {
    for (const auto& name : variables_) ::unsetenv(name.c_str());
  }
  // Forks inherit it.
  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    variables_.insert(name);
  }
  std::set<std::string> pulled_files(const fs::path& snapshot) const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(snapshot))
      if (!entry.is_directory()) names.insert(entry.path().lexically_relative(snapshot).string());
    return names;
  }

  const net::StandInHub hub_;
  std::set<std::string> demo_;  // its files
  std::set<std::string> variables_;
};

TEST_F(PullModel, BringsWhatGenerateReadsAndNothingElse) {
  expect_bad_input({"generate", "a", "-m", "org/demo"}, "'braid pull org/demo' loads it");
  const auto pulled = braid({"pull", "org/demo"});
  ASSERT_EQ(pulled.exit_code, 0) << pulled.err;
  const fs::path snapshot = pulled.out.substr(0, pulled.out.size() - 1);
  const auto files = pulled_files(snapshot);
  for (const auto& name : files) EXPECT_TRUE(demo_.contains(name)) << name;
  for (const auto& name : demo_)
    EXPECT_TRUE(!name.ends_with(".safetensors") || files.contains(name)) << name;
  EXPECT_THAT(pulled.err, HasSubstr("load     "));
  hub_.have_faults({{"page", true}});  // offline, too
  set("HF_HUB_OFFLINE", "1");
  const auto own = braid({"generate", "a red circle", "-m", "org/demo", "--size", "32x32",
                          "--steps", "2", "-q", "-o", "own.png", "--json"});
  ASSERT_EQ(own.exit_code, 0) << own.err;
  fs::create_directories(folder_ / "elsewhere");
  fs::create_directory_symlink(kDemo, folder_ / "elsewhere" / "demo");
  const auto other = braid({"generate", "a red circle", "-m", "elsewhere/demo", "--size", "32x32",
                            "--steps", "2", "-q", "-o", "other.png"});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(read_file(folder_ / "own.png"), read_file(folder_ / "other.png"));
  EXPECT_THAT(braid({"pull", "org/demo"}).err,
              HasSubstr("HF_HUB_OFFLINE forbids to ask 127.0.0.1"));
}

using SlowPullModel = PullModel;

TEST_F(SlowPullModel, EveryFileThatIsLeftOutIsNotMissed) {
  const auto listed = braid({"pull", "org/demo", "--dry-run", "--json"});
  EXPECT_FALSE(fs::exists(folder_ / "home")) << "written by --dry-run";
  const auto pulled = braid({"pull", "org/demo", "--json"});
  ASSERT_EQ(pulled.exit_code, 0) << pulled.err;
  const auto json = nlohmann::json::parse(pulled.out);
  EXPECT_EQ(nlohmann::json::parse(listed.out), json);
  EXPECT_EQ(json["repository"], "org/demo");
  EXPECT_EQ(json["revision"], "main");
  EXPECT_EQ(json["bytes"], json["missing_bytes"]);
  for (const auto& file : json["files"]) {
    const auto path = kDemo / file["path"].get<std::string>();
    EXPECT_EQ(file["bytes"], fs::file_size(path)) << path;
  }
  const auto again = braid({"pull", "org/demo", "--dry-run", "--json"});
  EXPECT_EQ(nlohmann::json::parse(again.out)["missing_bytes"], 0);
  EXPECT_THAT(braid({"pull", "org/demo", "--dry-run"}).out, HasSubstr("together, 0 bytes of it"));
}

TEST_F(SlowPullModel, MissesDamagedFilesWhenItVerifies) {
  ASSERT_EQ(braid({"pull", "org/demo", "-q"}).exit_code, 0);
  const auto missing = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"pull", "org/demo", "--dry-run", "--json"});
    return nlohmann::json::parse(braid(std::move(flags)).out)["missing_bytes"];
  };
  EXPECT_EQ(missing({"--verify"}), 0);
  const auto commit = read_file(folder_ / "home/hub/models--org--demo/refs/main");
  const auto file = folder_ / "home/hub/models--org--demo/snapshots" / commit / kFlux;
  auto bytes = read_file(file);
  bytes.back() ^= 1;
  write_file(fs::canonical(file), bytes);
  EXPECT_EQ(missing({}), 0) << "its size is right";
  EXPECT_EQ(missing({"--verify"}), bytes.size());
  EXPECT_THAT(braid({"pull", "org/demo", "--dry-run", "--verify"}).err,
              HasSubstr(std::string(kFlux) + " is damaged"));
  EXPECT_EQ(read_file(file), bytes) << "a dry run changes nothing";
  for (const auto size : {bytes.size(), std::size_t(0)}) {
    const auto pulled = braid({"pull", "org/demo", "--verify", "--json"});
    ASSERT_EQ(pulled.exit_code, 0) << pulled.err;
    EXPECT_EQ(nlohmann::json::parse(pulled.out)["missing_bytes"], size) << "it is loaded again";
  }
}

TEST_F(SlowPullModel, SendsTheTokenOfTheFileToTheHubAlone) {
  hub_.have_faults({{"gated", true}});
  const auto gated = braid({"pull", "org/demo"});
  expect_refusal(gated, 2, "org/demo is gated: accept its licence at http://127.0.0.1");
  fs::create_directories(folder_ / "home");
  write("home/token", "good\n");
  EXPECT_EQ(braid({"pull", "org/demo", "-q"}).exit_code, 0);
  for (const auto& request : hub_.requests())
    EXPECT_TRUE(request["where"] != "network" || request["token"] == "") << request;
  write("home/token", "bad token\n");
  expect_bad_input({"pull", "org/demo"}, "has spaces or other characters that no token has");
  set("HF_TOKEN", "secret-of-mine");
  hub_.have_faults({{"token", "good"}});
  const auto refused = braid({"pull", "org/demo"});
  expect_refusal(refused, 2, "refuses the token in HF_TOKEN");
  EXPECT_THAT(refused.err, Not(HasSubstr("secret-of-mine")));
}

TEST_F(SlowPullModel, GoesOnAfterASignal) {
  hub_.have_faults({{"stall", {{kFlux, 50'000}}}});
  Subprocess first({.arguments = {"pull", "org/demo"}, .folder = folder_});
  const auto blobs = folder_ / "home/hub/models--org--demo/blobs";
  const auto has_begun = [&] {
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(blobs, missing))
      if (entry.path().extension() == ".incomplete" && entry.file_size(missing) == 50'000)
        return true;
    return false;
  };
  for (int i = 0; i < 600 && !has_begun(); ++i) ::usleep(50'000);
  ASSERT_TRUE(has_begun());
  first.send(SIGINT);
  const auto stopped = first.finish();
  EXPECT_EQ(stopped.exit_code, 128 + SIGINT);
  EXPECT_THAT(stopped.err, HasSubstr("the same command goes on from here"));
  expect_bad_input({"generate", "a", "-m", "org/demo"}, "org/demo");
  hub_.have_faults(nlohmann::json::object());
  hub_.forget_requests();
  EXPECT_EQ(braid({"pull", "org/demo"}).exit_code, 0);
  bool is_resumed = false;
  for (const auto& request : hub_.requests()) is_resumed |= request["range"] == "bytes=50000-";
  EXPECT_TRUE(is_resumed);
}

TEST_F(SlowPullModel, SaysThatTheDiskIsFull) {
  const auto full =
      Subprocess({.arguments = {"pull", "org/demo"}, .folder = folder_, .largest_file = 300'000})
          .finish();
  expect_refusal(full, 1, "File too large");
  expect_bad_input({"generate", "a", "-m", "org/demo"}, "org/demo");
  EXPECT_EQ(braid({"pull", "org/demo"}).exit_code, 0);
}

TEST_F(PullModel, RefusesWhatBraidDoesNotRunBeforeItIsLoaded) {
  hub_.put("org/sd/model_index.json", R"({"_class_name": "StableDiffusionPipeline"})");
  hub_.put("org/sd/unet/model.safetensors", "large");
  expect_bad_input({"pull", "org/sd"}, "it describes a StableDiffusionPipeline");
  for (const auto& request : hub_.requests()) EXPECT_NE(request["where"], "network");
  hub_.put("org/quants/a-Q4_K.gguf", "a");
  hub_.put("org/quants/a-Q8_0.gguf", "b");
  expect_bad_input({"pull", "org/quants"},
                   "as in org/quants/a-Q4_K.gguf: a-Q4_K.gguf, a-Q8_0.gguf");
  const auto one = braid({"pull", "org/quants/a-Q8_0.gguf"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("/a-Q8_0.gguf\n"));
  expect_bad_input({"pull", "org/quants/c.gguf"}, "org/quants has no c.gguf");
  for (const char* const name : {"demo", "", "../a/b", "org/demo@", "https://host/org/demo"})
    expect_bad_input({"pull", name}, name[0] ? "is no name of a repository" : "there is no name");
  set("HF_ENDPOINT", "ftp://host");
  expect_bad_input({"pull", "org/demo"}, "HF_ENDPOINT should be an address");
}

// A package may come without the models, and a program may be copied.
TEST_F(SlowPullModel, IsListedWhereNoModelComesWithBraid) {
  const char* const copied = "mkdir bin && cp \"$0\" \"$0-engine\" bin && exec bin/${0##*/} \"$@\"";
  const auto listed = run_in_shell(copied, {"models"}, folder_);
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("braid pull org/name loads one"));
  EXPECT_THAT(listed.out, Not(HasSubstr("Comes with Braid")));
}

TEST_F(SlowPullModel, IsListedWithWhatElseIsHere) {
  EXPECT_THAT(braid({"models"}).out,
              AllOf(HasSubstr("Comes with Braid"), HasSubstr("braid pull org/name loads one"),
                    HasSubstr("FLUX.1-dev")));
  ASSERT_EQ(braid({"pull", "org/demo", "-q"}).exit_code, 0);
  fs::create_directories(folder_ / "comfy/models/unet");
  fs::copy_file(kDemo / kFlux, folder_ / "comfy/models/unet/mine.safetensors");
  const auto listed = braid({"models", "--comfy", "comfy", "--json"});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  std::map<std::string, nlohmann::json> by_name;
  const auto all = nlohmann::json::parse(listed.out);
  for (const auto& model : all["models"]) by_name[model["name"]] = model;
  ASSERT_TRUE(by_name.contains("org/demo")) << listed.out;
  const auto& cached = by_name["org/demo"];
  EXPECT_EQ(cached["source"], "cache");
  EXPECT_EQ(cached["family"], "FLUX.1");
  EXPECT_EQ(cached["fits"], true);
  EXPECT_THAT(cached["here"].get<std::string>(), HasSubstr("of the "));
  // The bytes of weights, as `info` counts them.
  const auto info = nlohmann::json::parse(braid({"info", "-m", kDemo, "--json"}).out);
  EXPECT_EQ(cached["bytes"], info["model"]["bytes"]);
  EXPECT_EQ(by_name["mine.safetensors"]["source"], "comfy");
  // 11 901 408 320 parameters of the transformer alone, in bfloat16
  EXPECT_GT(by_name["FLUX.1-dev"]["bytes"], 2 * 11'901'408'320);
  EXPECT_EQ(by_name["FLUX.1-dev"]["path"], nullptr);
  for (const auto* const tool : {"FLUX.1-Canny-dev", "FLUX.1-Fill-dev", "FLUX.1-Kontext-dev"}) {
    EXPECT_EQ(by_name[tool]["family"], "FLUX.1") << tool;
    EXPECT_GE(by_name[tool]["bytes"], by_name["FLUX.1-dev"]["bytes"]) << tool;
  }
}

// A row of `braid models` for each thing that is there and cannot be read.
class ModelsHere : public PullModel {
 protected:
  std::map<std::string, std::string> sentences(std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.begin(), {"models", "--json"});
    const auto listed = braid(std::move(arguments));
    EXPECT_EQ(listed.exit_code, 0) << listed.err;
    std::map<std::string, std::string> by_name;
    const auto all = nlohmann::json::parse(listed.out);
    for (const auto& model : all["models"]) by_name[model["name"]] = model["here"];
    return by_name;
  }
};

using SlowModelsHere = ModelsHere;

TEST_F(SlowModelsHere, SayThatTheCacheCannotBeRead) {
  fs::create_directory_symlink("loop", folder_ / "loop");
  set("HF_HUB_CACHE", (folder_ / "loop").string());
  const auto listed = braid({"models"});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out, AllOf(HasSubstr("loop cannot be read: Too many levels of symbolic links"),
                                Not(HasSubstr("no model"))));
  EXPECT_THAT(sentences()[(folder_ / "loop").string()], HasSubstr("Too many levels"));
}

TEST_F(SlowModelsHere, SayWhichModelsOfTheCacheCannotBeRead) {
  const auto hub = folder_ / "hub";
  const auto snapshot = [&](const std::string& name) {
    const auto folder = hub / ("models--org--" + name) / "snapshots" / "0123abcd";
    fs::create_directories(folder);
    return folder;
  };
  set("HF_HUB_CACHE", hub.string());
  fs::create_symlink("model_index.json", snapshot("b") / "model_index.json");
  fs::create_directory_symlink("models--org--a", hub / "models--org--a");
  write_file(snapshot("c") / "c.safetensors", "version https://git-lfs.github.com/spec/v1\noid 0");
  fs::create_symlink("../../blobs/gone", snapshot("d") / "d.safetensors");
  auto here = sentences();
  EXPECT_THAT(here["org/a"], HasSubstr("Too many levels of symbolic links"));
  EXPECT_THAT(here["org/b"], HasSubstr("model_index.json"));
  EXPECT_THAT(here["org/c"], HasSubstr("c.safetensors is a Git LFS pointer"));
  EXPECT_THAT(here["org/d"], HasSubstr("d.safetensors cannot be read: No such file"));
}

TEST_F(SlowModelsHere, SayWhichOfComfysFilesCannotBeRead) {
  const auto models = folder_ / "comfy/models";
  fs::create_directories(models / "diffusion_models");
  const auto whole = read_file(kDemo / kFlux);
  write_file(models / "diffusion_models/cut.safetensors", whole.substr(0, whole.size() / 2));
  fs::create_symlink("loop.gguf", models / "diffusion_models/loop.gguf");
  fs::create_directory_symlink("unet", models / "unet");
  auto here = sentences({"--comfy", "comfy"});
  EXPECT_THAT(here["cut.safetensors"], HasSubstr("download was not completed"));
  EXPECT_THAT(here["loop.gguf"], HasSubstr("Too many levels of symbolic links"));
  EXPECT_THAT(here["unet"], HasSubstr("Too many levels of symbolic links"));
}

TEST_F(ModelsHere, AreNoAddresses) {
  for (const char* const address : {"https://huggingface.co/org/m", "hf.co/org/m/tree/main"})
    expect_bad_input({"generate", "a", "-m", address},
                     std::string("there is no model at ") + address +
                         ", which is an address: its name here is org/m, and 'braid pull org/m'");
}

}  // namespace braid::pull_test
