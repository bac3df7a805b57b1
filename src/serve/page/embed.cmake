# cmake -Doutput=FILE.cc -Dfiles=A;B -P embed.cmake: generates page_files() from these files.
set(entries "")
foreach(file ${files})
  file(READ ${file} contents)
  get_filename_component(name ${file} NAME)
  string(APPEND entries "    {\"${name}\", R\"__file__(${contents})__file__\"},\n")
endforeach()
file(WRITE ${output} "#include \"serve/page/page_files.h\"

namespace braid::serve {
namespace {

constexpr PageFile kPageFiles[] = {
${entries}};

}  // namespace

std::span<const PageFile> page_files() { return kPageFiles; }

}  // namespace braid::serve
")
