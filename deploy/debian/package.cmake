# `make deb` makes redline, and redline-demo-models with the demonstration pair, using CPack. The maintainer scripts are in
# this folder.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME redline)
set(CPACK_PACKAGE_VENDOR Redline)
set(CPACK_PACKAGE_CONTACT "The Redline authors <redline@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
# The units contain the installation path, so they must be written with the real one.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL redline demo_models)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_REDLINE_PACKAGE_NAME redline)
set(CPACK_COMPONENT_REDLINE_DESCRIPTION "server for code-edit models on CPUs
 Serves code-edit models to many users at once, with an OpenAI-compatible
 interface: what is known of an edit is verified in few, wide forward passes,
 and the answer stays the same bytes.")
set(CPACK_DEBIAN_REDLINE_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_REDLINE_PACKAGE_RECOMMENDS "redline-demo-models")
set(CPACK_DEBIAN_REDLINE_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/conffiles ${CMAKE_CURRENT_LIST_DIR}/postinst
  ${CMAKE_CURRENT_LIST_DIR}/prerm ${CMAKE_CURRENT_LIST_DIR}/postrm)

set(CPACK_DEBIAN_DEMO_MODELS_PACKAGE_NAME redline-demo-models)
set(CPACK_COMPONENT_DEMO_MODELS_DESCRIPTION "models to try Redline with
 A target and a draft model of a few million parameters that make simple edits.")
set(CPACK_DEBIAN_DEMO_MODELS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DEMO_MODELS_PACKAGE_SHLIBDEPS OFF)
include(CPack)
