//! Downloads of pages that are gone before anybody could listen to them.

use tabmux_driver::DownloadState;

use super::*;

impl Played {
    /// A page downloads a file, from the first word to the last.
    async fn downloads(&self, target: &str, file: &std::path::Path) {
        let guid = file.file_name().unwrap().to_str().unwrap();
        let begins = json!({"frameId": target, "guid": guid, "url": "http://a.test/f", "suggestedFilename": "f.txt"});
        self.say(&json!({"method": "Browser.downloadWillBegin", "params": begins})).await;
        for (state, file) in [("inProgress", None), ("completed", Some(file))] {
            let goes = json!({"guid": guid, "totalBytes": 4, "receivedBytes": 4, "state": state, "filePath": file});
            self.say(&json!({"method": "Browser.downloadProgress", "params": goes})).await;
        }
    }
}

/// Files of a shared profile arrive in one place, so that place does not say whose they are; the page does, whenever it is known whose it is.
#[tokio::test]
async fn what_a_popup_downloads_is_its_openers_also_if_it_is_gone_at_once() {
    for isolation in [Isolation::Tab, Isolation::Window] {
        let home = tempfile::tempdir().unwrap();
        let (own, arriving) = (home.path().join("own"), home.path().join(".arriving"));
        for directory in [&own, &arriving] {
            std::fs::create_dir(directory).unwrap();
        }
        let (browser, played) = Played::start().await;
        let spec = ContextSpec { isolation, downloads: Some(own.clone()), ..ContextSpec::default() };
        let context = browser.open_context(&spec).await.expect("a context opens");
        context.open_page().await.expect("a page opens");
        played.refuses("Target.attachToTarget");

        // It is known whose the page is before the download begins.
        played.opens("P8", Some("T1")).await;
        played.is_asked("Target.closeTarget", "P8", 1).await;
        std::fs::write(arriving.join("first"), "1234").unwrap();
        played.downloads("P8", &arriving.join("first")).await;

        // And here, because a page is being made, when everything is over.
        played.withholds("Target.createTarget");
        let opening = tokio::spawn({
            let context = Arc::clone(&context);
            async move { context.open_page().await.map(drop) }
        });
        played.hears_times("Target.createTarget", 2).await;
        played.opens("P9", Some("T1")).await;
        std::fs::write(arriving.join("second"), "1234").unwrap();
        played.downloads("P9", &arriving.join("second")).await;
        // A person's, which stays where it is.
        std::fs::write(arriving.join("persons"), "1234").unwrap();
        played.downloads("P7", &arriving.join("persons")).await;
        played.relents().await;

        let mut list = context.downloads();
        let whole = list.wait_for(|list| list.len() == 2 && list.iter().all(|one| one.state == DownloadState::Completed));
        let whole = tokio::time::timeout(Duration::from_secs(10), whole).await.expect("both come").expect("it is there").clone();
        let mut names: Vec<_> = whole.iter().map(|one| one.path.clone().expect("a file")).collect();
        names.sort();
        assert_eq!(names, [own.join("f (1).txt"), own.join("f.txt")], "{isolation:?}");
        let left: Vec<_> = std::fs::read_dir(&arriving).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["persons"], "{isolation:?}");
        opening.abort();
    }
}
