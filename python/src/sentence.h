// Sentences of Braid as Python's strings. They cite names and values of files, whose bytes may be
// anything.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace braid::python {

// What is no UTF-8 is written as \xNN.
inline nanobind::str string_of(std::string_view sentence) {
  PyObject* const made =
      PyUnicode_DecodeUTF8(sentence.data(), Py_ssize_t(sentence.size()), "backslashreplace");
  if (!made) throw nanobind::python_error();
  return nanobind::steal<nanobind::str>(made);
}

}  // namespace braid::python
