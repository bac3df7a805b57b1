// Folders of models as ComfyUI, A1111, Forge and SwarmUI lay them out, and those that ComfyUI's
// extra_model_paths.yaml adds.
#include "pipeline/files/comfy_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "message_of.h"
#include "pipeline/files/extra_model_paths.h"
#include "temporary_folder.h"

namespace braid::comfy_files_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ModelFolders : public testing::Test {
 protected:
  fs::path put(const fs::path& name, const std::string& contents = "") const {
    fs::create_directories((folder_ / name).parent_path());
    write_file(folder_ / name, contents);
    return folder_ / name;
  }
  static std::vector<fs::path> found(const fs::path& given, const comfy::Folders& names) {
    return weights_below(comfy_folders(comfy_models(given), names)).files;
  }
  const TemporaryFolder folder_;
};

// ------------------------------------------------------------------------ other tools' folders

struct Tree {
  const char* name;
  const char* folder;  // in the tool's root
  const char *models, *texts, *vae, *loras, *controlnets;
};
// paths.py, shared_cmd_options.py and extensions-builtin of A1111 and Forge; SwarmUI's Settings.cs
const Tree kTrees[] = {
    {"ComfyUI", "models", "diffusion_models", "text_encoders", "vae", "loras", "controlnet"},
    {"older ComfyUI", "models", "unet", "clip", "vae", "loras", "controlnet"},
    {"Forge", "models", "Stable-diffusion", "text_encoder", "VAE", "Lora", "ControlNet"},
    {"SwarmUI", "Models", "Stable-Diffusion", "clip", "VAE", "Lora", "controlnet"},
    {"SwarmUI's newer", "Models", "diffusion_models", "clip", "VAE", "Lora", "controlnet"}};

TEST_F(ModelFolders, AreThoseOfOtherToolsToo) {
  for (const auto& tree : kTrees) {
    const auto root = folder_ / tree.name;
    const auto put_in = [&](const char* folder) {
      return put(root / tree.folder / folder / "sub" / "a.safetensors");
    };
    for (const auto& [name, names] :
         {std::pair(tree.models, comfy::kModels), std::pair(tree.texts, comfy::kTextEncoders),
          std::pair(tree.vae, comfy::kAutoencoders), std::pair(tree.loras, comfy::kAdapters),
          std::pair(tree.controlnets, comfy::kControlNets)}) {
      const auto file = put_in(name);
      for (const auto& given : {root, root / tree.folder, root / tree.folder / ""})
        EXPECT_THAT(found(given, names), ElementsAre(file)) << tree.name << " " << name;
      EXPECT_EQ(find_in_comfy("a", comfy_models(root), names), file);
    }
  }
}

TEST_F(ModelFolders, HaveTheirNamesInTheirCase) {
  for (const char* const other : {"STABLE-DIFFUSION", "Vae", "lora", "Text_Encoder", "ESRGAN"})
    put(fs::path("models") / other / "a.safetensors");
  for (const auto& names : {comfy::kModels, comfy::kTextEncoders, comfy::kAutoencoders,
                            comfy::kAdapters, comfy::kControlNets})
    EXPECT_THAT(found(folder_.path(), names), IsEmpty());
}

// A folder under two names is one, as it is where case does not count.
TEST_F(ModelFolders, AreSearchedOnce) {
  const auto file = put("models/vae/a.safetensors");
  fs::create_directory_symlink("vae", folder_ / "models/VAE");
  EXPECT_EQ(found(folder_.path(), comfy::kAutoencoders).size(), 1u);
}

TEST_F(ModelFolders, SayWhatCannotBeRead) {
  put("vae/whole.safetensors");
  fs::create_symlink("loop.safetensors", folder_ / "vae/loop.safetensors");
  fs::create_symlink("gone", folder_ / "vae/dead.safetensors");
  fs::create_symlink("gone", folder_ / "vae/dead.txt");
  fs::create_directory_symlink("circle", folder_ / "vae/circle");
  ASSERT_EQ(::mkfifo((folder_ / "vae/pipe.sft").c_str(), 0600), 0);
  const auto there = weights_below({folder_ / "vae", folder_ / "missing"});
  EXPECT_EQ(there.files.size(), 1u);
  std::vector<std::string> sentences;
  for (const auto& [path, sentence] : there.unread)
    sentences.push_back(sentence.substr((folder_ / "vae/").string().size()));
  EXPECT_THAT(sentences,
              ElementsAre("circle cannot be read: Too many levels of symbolic links",
                          "dead.safetensors cannot be read: No such file or directory",
                          "loop.safetensors cannot be read: Too many levels of symbolic links",
                          "pipe.sft is neither a file nor a folder"));
  EXPECT_EQ(there.unread[0].path, folder_ / "vae/circle");
}

TEST_F(ModelFolders, NameTheLinkIntoALockedFolder) {
  put("locked/a.safetensors");
  put("closed/b.safetensors");
  put("vae/whole.safetensors");
  fs::create_symlink("../locked/a.safetensors", folder_ / "vae/a.safetensors");
  fs::create_directory_symlink("../locked/sub", folder_ / "vae/sub");
  fs::permissions(folder_.path(), fs::perms(0711));
  fs::permissions(folder_ / "vae", fs::perms(0755));
  fs::permissions(folder_ / "locked", fs::perms::none);
  fs::permissions(folder_ / "closed", fs::perms(0444));
  constexpr uid_t kNobody = 65534;  // root may enter every folder
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const auto there = weights_below({folder_ / "vae", folder_ / "closed"});
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  for (const char* const name : {"locked", "closed"})
    fs::permissions(folder_ / name, fs::perms::owner_all);
  EXPECT_THAT(there.files, ElementsAre(folder_ / "vae/whole.safetensors"));
  std::vector<fs::path> unread;
  for (const auto& path : there.unread) unread.push_back(path.path);
  EXPECT_THAT(unread,
              ElementsAre(folder_ / "closed", folder_ / "vae/a.safetensors", folder_ / "vae/sub"));
}

// ---------------------------------------------------------------------- extra_model_paths.yaml

const char* const kExample = R"(# ComfyUI's example, and what people make of it
a1111:
    base_path: /w/stable-diffusion-webui/

    checkpoints: models/Stable-diffusion   # with a comment
    vae: "models/My VAE"
    loras: |
         models/Lora
         models/LyCORIS

         /elsewhere/#loras
    # embeddings: embeddings
comfyui:
  is_default: true
  base_path: ${BRAID_TEST_ROOT}/shared
  unet: 'diffusion models/'
  clip: |-
      models/clip/
      models/text_encoders/
nothing:
here:
     controlnet: nets/../nets
)";

// Expected are the folders that ComfyUI's load_extra_path_config adds, with PyYAML 6.0.3.
TEST_F(ModelFolders, OfExtraPathsAreThoseOfComfyUI) {
  ::setenv("BRAID_TEST_ROOT", "/root", 1);
  std::vector<std::string> lines;
  for (const std::string end : {"\n", "\r\n"}) {
    std::string text = end == "\n" ? "" : "\xef\xbb\xbf";
    for (const char* c = kExample; *c; ++c) text += *c == '\n' ? end : std::string(1, *c);
    lines.clear();
    for (const auto& extra : read_extra_model_paths(put("extra.yaml", text)))
      lines.push_back(extra.kind + " " + extra.path.string() + (extra.is_default ? " first" : ""));
    EXPECT_THAT(lines,
                ElementsAre("checkpoints /w/stable-diffusion-webui/models/Stable-diffusion",
                            "vae /w/stable-diffusion-webui/models/My VAE",
                            "loras /w/stable-diffusion-webui/models/Lora",
                            "loras /w/stable-diffusion-webui/models/LyCORIS",
                            "loras /elsewhere/#loras", "unet /root/shared/diffusion models first",
                            "clip /root/shared/models/clip first",
                            "clip /root/shared/models/text_encoders first",
                            "controlnet " + (folder_ / "nets").string()));
  }
  ::unsetenv("BRAID_TEST_ROOT");
}

TEST_F(ModelFolders, OfExtraPathsInAnotherFormNameTheLine) {
  constexpr const char* kPath = "a path, or several in a block of lines, should be here";
  constexpr const char* kSection = "a section of lines 'key: path' should be here";
  const std::pair<const char*, std::string> kCases[] = {
      {"- a: b\n", "line 1 cannot be read: sections should be here"},
      {"a: b\n", text_of("line 1 cannot be read: ", kSection)},
      {"b:\n  vae: c\na:\n  - vae: b\n", text_of("line 4 cannot be read: ", kSection)},
      {"a:\n  vae: [b, c]\n", text_of("line 2 cannot be read: ", kPath)},
      {"a:\n  base_path: {b: c}\n", text_of("line 2 cannot be read: ", kPath)},
      {"a:\n  is_default: maybe\n", "line 2 cannot be read: true or false should be here"},
      {"a:\n  vae: b\n    loras: c\n", "line 3 cannot be read: "},
      {"a:\n  vae: {b\n", "cannot be read: "}};
  for (const auto& [text, words] : kCases) {
    const auto file = put("extra.yaml", text);
    EXPECT_THAT(message_of([&] { (void)read_extra_model_paths(file); }),
                AllOf(HasSubstr(file.string() + ": line "), HasSubstr(words)))
        << text;
  }
  for (const char* const none : {"", "# only\n\n", "a:\n", "---\na: ~\nb: {}\n...\n"})
    EXPECT_TRUE(read_extra_model_paths(put("extra.yaml", none)).empty()) << none;
}

const char* const kDefaults = R"(%YAML 1.1
--- # paths
"a1111":
    is_default: 1
    base_path: /w/a
    'vae': |
        first
        second
    custom_nodes: >
        x
          y

    "embeddings": &nodes "a\tb"
    ipadapter:
    loras: L
none: ~
empty: {}
other:
    is_default: true
    vae: /w/third
    checkpoints: /w/c
last:
    vae: /w/fourth
    is_default: 0
...
)";

// Expected are the lists of ComfyUI's load_extra_path_config (which takes no key without a value,
// as `ipadapter` is one), with PyYAML 6.0.3: each of its defaults goes to the front.
TEST_F(ModelFolders, OfExtraPathsBeginWithTheLastDefault) {
  put("extra_model_paths.yaml", kDefaults);
  const auto own = [&](const char* name) { return folder_ / name; };
  EXPECT_THAT(comfy_folders(folder_.path(), {"vae"}),
              ElementsAre("/w/third", "/w/a/second", "/w/a/first", own("vae"), "/w/fourth"));
  EXPECT_THAT(comfy_folders(folder_.path(), {"loras"}), ElementsAre("/w/a/L", own("loras")));
  EXPECT_THAT(comfy_folders(folder_.path(), {"checkpoints"}),
              ElementsAre("/w/c", own("checkpoints")));
}

class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& folder) { fs::current_path(folder); }
  ~WorkingFolder() { fs::current_path(before_); }

 private:
  const fs::path before_ = fs::current_path();
};

TEST_F(ModelFolders, HaveExtraPathsHoweverTheyAreNamed) {
  const auto other = put("other/a.safetensors");
  put("ComfyUI/extra_model_paths.yaml", "a:\n  base_path: ../other\n  vae: .\n");
  fs::create_directory(folder_ / "ComfyUI/models");
  fs::create_directory_symlink("ComfyUI/models", folder_ / "link");
  const WorkingFolder inside(folder_ / "ComfyUI/models");
  for (const char* const given : {".", "./", "..", "../models", "../models/.", "../../link",
                                  "../../link/", "../../ComfyUI/models//"}) {
    const auto files = found(given, comfy::kAutoencoders);
    ASSERT_EQ(files.size(), 1u) << given;
    EXPECT_TRUE(fs::equivalent(files[0], other)) << given;
  }
}

TEST_F(ModelFolders, HaveTheFilesOfANameThatHasFolders) {
  const auto x = put("loras/x/s.safetensors"), y = put("loras/y/s.safetensors");
  const auto deep = put("loras/z/x/d.SFT"), elsewhere = put("elsewhere/q/e.gguf");
  fs::create_directory_symlink("../elsewhere", folder_ / "loras/link");
  put("extra_model_paths.yaml", "a:\n  loras: elsewhere\n");
  const auto lora = [&](const char* name) {
    return find_in_comfy(name, folder_.path(), comfy::kAdapters);
  };
  EXPECT_EQ(lora("x/s"), x);
  EXPECT_EQ(lora("x//s.safetensors"), x);
  EXPECT_EQ(lora("./y/s"), y);
  EXPECT_EQ(lora("loras/y/s"), y) << "with the name of the folder that is searched";
  EXPECT_EQ(lora("z/x/d"), deep) << "an extension in capitals";
  EXPECT_EQ(lora("d"), deep);
  EXPECT_EQ(lora("q/e"), elsewhere) << "though a link in another folder leads there, too";
  for (const char* const none : {"nowhere/s", "x/d", "/x/s", "x/s.gguf", "s/x"})
    EXPECT_EQ(lora(none), fs::path()) << none;
  EXPECT_THAT(message_of([&] { (void)lora("s"); }), HasSubstr("has 2 files named s"));
  const auto top = put("loras/s.safetensors");
  EXPECT_EQ(lora("s"), top);
  put("elsewhere/x/s.sft");
  EXPECT_THAT(message_of([&] { (void)lora("x/s"); }), HasSubstr("has 2 files named x/s"));
}

TEST_F(ModelFolders, MayLieElsewhere) {
  const auto own = put("ComfyUI/models/vae/own.safetensors");
  const auto other = put("other/VAE/other.safetensors");
  const auto twin = put("other/VAE/own.safetensors");
  const auto root = folder_ / "ComfyUI", models = root / "models";
  const auto yaml = [&](const std::string& further) {
    put("ComfyUI/extra_model_paths.yaml", "a:\n  base_path: ../other\n  vae: VAE\n" + further);
  };
  yaml("");
  for (const auto& given : {root, models, models / ""}) {
    EXPECT_THAT(found(given, comfy::kAutoencoders), ElementsAre(own, other, twin));
    EXPECT_THAT(found(given, comfy::kAdapters), IsEmpty());
    EXPECT_EQ(find_in_comfy("own.safetensors", comfy_models(given), comfy::kAutoencoders), own);
  }
  yaml("  is_default: true\n");
  EXPECT_EQ(find_in_comfy("own.safetensors", models, comfy::kAutoencoders), twin);
  yaml("  loras: [a]\n");
  EXPECT_THAT(message_of([&] { (void)found(root, comfy::kAutoencoders); }),
              HasSubstr("extra_model_paths.yaml: line 4"));
}

}  // namespace braid::comfy_files_test
