// A folder per test, its contents afterwards, and broken models.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "subprocess.h"
#include "temporary_folder.h"

namespace braid {

// A port without a listener.
int free_port();

// A port of 127.0.0.1 on which nothing else can listen.
class TakenPort {
 public:
  TakenPort();
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  ~TakenPort();
  int number() const;

 private:
  int socket_;
};

class Workplace : public testing::Test {
 protected:
  Finished braid(std::vector<std::string> arguments) const {
    return run_braid(std::move(arguments), folder_);
  }
  // Runs `braid generate` with few steps and few pixels, followed by `arguments`.
  Finished draw(std::vector<std::string> arguments) const;
  std::set<std::string> files() const;  // names in the folder, without the model
  std::filesystem::path write(const std::string& name, const std::string& contents) const;

  // One sentence, this exit code, nothing on standard output, no new files.
  void expect_refusal(const Finished& finished, int exit_code, const std::string& words) const;
  void expect_bad_input(std::vector<std::string> arguments, const std::string& words) const {
    expect_refusal(braid(std::move(arguments)), 2, words);
  }

  const TemporaryFolder own_;
  const std::filesystem::path& folder_ = own_.path();
};

// The bundled model, linked file by file into the workplace's folder `model`, to be damaged.
class SpoiledModel : public Workplace {
 protected:
  SpoiledModel();

  std::filesystem::path file(const std::string& name) const { return folder_ / "model" / name; }
  std::string contents(const std::string& name) const;
  // Replaces the link with its own file.
  void replace(const std::string& name, const std::string& contents) const;
  void remove(const std::string& name) const;
  // Changes the header of a safetensors file, not the data after it.
  void edit_header(const std::string& name,
                   const std::function<void(nlohmann::json& header)>& edit) const;
  void edit_json(const std::string& name,
                 const std::function<void(nlohmann::json& json)>& edit) const;
  void expect_refused(const std::string& words) const {
    expect_bad_input({"generate", "a", "-m", "model"}, words);
  }
};

}  // namespace braid
