//! A browser without a browser, for tests of everything above the driver.
